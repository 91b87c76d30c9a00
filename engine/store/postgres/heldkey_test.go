package postgres

import (
	"context"
	"fmt"
	"testing"
	"time"

	"github.com/saga-engine/engine/engine/machine/status"
	"github.com/saga-engine/engine/engine/store"
	"github.com/saga-engine/engine/engine/store/naming"
	"github.com/saga-engine/engine/engine/store/storetest"
)

// succeed submits a run under a key and ends it with success.
func (b *bench) succeed(t *testing.T, run status.RunID, key string) {
	t.Helper()
	if _, err := storetest.Submit(t.Context(), b.w, b.create(run), naming.Names{Workflow: "w", Key: key}); err != nil {
		t.Fatal(err)
	}
	if err := b.commit(t.Context(), store.Transition{Run: run, Seq: 1, At: at, State: status.RunSucceeded, NextCheck: store.Never, Data: []byte("1")}); err != nil {
		t.Fatal(err)
	}
}

// S98 I11: runs that succeeded keep their keys, and a batch of submissions finds
// them all with a fixed number of questions: the submissions in dispute do not
// make the others go one by one.
func TestHeldKeysCostFewQuestions(t *testing.T) {
	const held = 16
	dsn := migrated(t)
	p, through := newProxy(t, dsn)
	b := newBench(t, through)
	asked := func(first status.RunID) int {
		t.Helper()
		batch := make([]store.Transition, 0, 2*held)
		for i := range status.RunID(2 * held) { // every second key is free
			c := b.create(first + i)
			key := fmt.Sprintf("free-%d", first+i)
			if i%2 == 0 {
				key = fmt.Sprint("held-", i/2)
			}
			c.Names = &naming.Names{Workflow: "w", Key: key}
			batch = append(batch, c)
		}
		p.mu.Lock()
		before := p.answers
		p.mu.Unlock()
		// A batch that goes one by one takes minutes.
		ctx, cancel := context.WithTimeout(t.Context(), 20*time.Second)
		defer cancel()
		out, err := b.w.Commit(ctx, batch)
		if err != nil {
			t.Fatal(err)
		}
		for i, o := range out {
			if i%2 == 0 && (o.Landed || !o.Submitted.Exists || o.Submitted.Run != status.RunID(i/2+1)) {
				t.Errorf("held key %d: %+v, want the run that succeeded", i/2, o)
			}
			if i%2 == 1 && !o.Landed {
				t.Errorf("free key: %+v, want landed", o)
			}
		}
		p.mu.Lock()
		defer p.mu.Unlock()
		return p.answers - before
	}
	for i := range status.RunID(held) {
		b.succeed(t, i+1, fmt.Sprint("held-", i))
	}
	asked(1000) // prepares the statements
	if n := asked(2000); n > 5 {
		t.Errorf("the server answered %d times for %d keys in dispute, want at most 5 times", n, held)
	}
}

// S98 I11: a submission that goes alone finds that the run which holds its key
// has succeeded meanwhile, and does not take the key.
func TestSubmissionAloneFindsAHeldKey(t *testing.T) {
	b := newBench(t, migrated(t))
	b.succeed(t, 1, "k")
	w, ok := b.w.(*Writer)
	if !ok {
		t.Fatalf("writer = %T", b.w)
	}
	second := b.create(2)
	second.Names = &naming.Names{Workflow: "w", Key: "k"}
	c := commit{w: w, items: []store.Transition{second}, out: make([]store.Outcome, 1)}
	if err := c.commitSingly(t.Context(), 0); err != nil {
		t.Fatal(err)
	}
	if o := c.out[0]; o.Landed || o.Err != nil || !o.Submitted.Exists || o.Submitted.Run != 1 {
		t.Errorf("outcome = %+v, want run 1, which holds the key", o)
	}
}
