package postgres

import (
	"errors"
	"testing"

	"github.com/saga-engine/engine/engine/machine/status"
	"github.com/saga-engine/engine/engine/store"
	"github.com/saga-engine/engine/engine/store/naming"
)

// newAlone returns a commit of one submission, as it is when a batch could not
// say what is in the submission's way.
func newAlone(t *testing.T, b *bench, run status.RunID, n naming.Names) *commit {
	t.Helper()
	w, ok := b.w.(*Writer)
	if !ok {
		t.Fatalf("writer = %T", b.w)
	}
	item := b.create(run)
	item.Names = &n
	return &commit{w: w, items: []store.Transition{item}, out: make([]store.Outcome, 1)}
}

// I1 T3: a submission that goes alone lands once, whichever answer is lost.
func TestSubmissionAloneLandsOnce(t *testing.T) {
	for name, landed := range map[string]bool{"the answer is lost": true, "the request is lost": false} {
		t.Run(name, func(t *testing.T) {
			p, through := newProxy(t, migrated(t))
			b := newBench(t, through)
			lost := 0
			p.loseNext(landed, func() { lost++ })
			c := newAlone(t, b, 1, naming.Names{Workflow: "w", Name: "one", Key: "k"})
			if err := c.commitSingly(t.Context(), 0); err != nil {
				t.Fatal(err)
			}
			if o := c.out[0]; !o.Landed || o.Err != nil || o.Submitted != (store.Submitted{Run: 1, Name: "one"}) {
				t.Errorf("outcome = %+v, want landed as run 1", o)
			}
			if lost != 1 {
				t.Errorf("%d answers were lost, want 1", lost)
			}
		})
	}
}

// I1 I3: a submission landed, its answer was lost, and its engine was declared
// dead before it could ask: the submission counts. A submission that was not committed is
// refused.
func TestSubmissionAloneOfADeadEngine(t *testing.T) {
	for name, landed := range map[string]bool{"it has landed": true, "it has not": false} {
		t.Run(name, func(t *testing.T) {
			dsn := migrated(t)
			p, through := newProxy(t, dsn)
			b, db := newBench(t, through), raw(t, dsn)
			p.loseNext(landed, func() {
				for _, q := range []string{`UPDATE engine.member SET dead = true`, `DELETE FROM engine.fence`} {
					if _, err := db.Exec(q); err != nil {
						t.Error(err)
					}
				}
			})
			c := newAlone(t, b, 1, naming.Names{Workflow: "w", Name: "one"})
			if err := c.commitSingly(t.Context(), 0); err != nil {
				t.Fatal(err)
			}
			if o := c.out[0]; o.Landed != landed || errors.Is(o.Err, store.ErrFenced) == landed {
				t.Errorf("outcome = %+v, want landed = %t", o, landed)
			}
		})
	}
}

// I1: the id of a submission that goes alone belongs to another run already: the
// submission is told so and takes nothing.
func TestSubmissionAloneOfATakenID(t *testing.T) {
	b := newBench(t, migrated(t))
	if err := b.commit(t.Context(), b.create(1)); err != nil {
		t.Fatal(err)
	}
	for name, n := range map[string]naming.Names{"without names": {Workflow: "w"}, "with a name": {Workflow: "w", Name: "one"}} {
		c := newAlone(t, b, 1, n)
		if err := c.commitSingly(t.Context(), 0); err != nil {
			t.Fatal(err)
		}
		if o := c.out[0]; o.Landed || !errors.Is(o.Err, store.ErrExists) {
			t.Errorf("%s: outcome = %+v, want ErrExists", name, o)
		}
	}
	if _, rows, err := store.LoadRun(t.Context(), b, 1); err != nil || len(rows) != 1 {
		t.Errorf("the other run has %d rows, err = %v, want 1", len(rows), err)
	}
}
