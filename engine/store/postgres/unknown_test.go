package postgres

import (
	"fmt"
	"testing"

	"github.com/saga-engine/engine/engine/machine/status"
	"github.com/saga-engine/engine/engine/store"
	"github.com/saga-engine/engine/engine/store/naming"
	"github.com/saga-engine/engine/engine/store/storetest"
)

// T3: the socket is cut between a commit and its answer, or just before the
// commit reaches the server, 360 times: what was asked for stands there once.
func TestOutcomeUnknown(t *testing.T) {
	const rounds = 120
	dsn := migrated(t)
	p, through := newProxy(t, dsn)
	cuts := 0 // guarded by p.mu
	cut := func() { cuts++ }
	b := newBench(t, through)
	for i := range rounds {
		run, landed := status.RunID(i+1), i%2 == 0
		p.loseNext(landed, cut)
		sub, err := storetest.Submit(t.Context(), b.w, b.create(run), naming.Names{Name: fmt.Sprintf("r%d", i), Workflow: "w", Key: fmt.Sprint(i)})
		if err != nil || sub.Exists || sub.Run != run {
			t.Fatalf("submit %d: %+v, err = %v", i, sub, err)
		}
		p.loseNext(landed, cut)
		if err := b.commit(t.Context(), store.Transition{Run: run, Seq: 1, At: at, Data: []byte("1"), Alerts: []store.Alert{{Kind: "k"}}}); err != nil {
			t.Fatalf("commit %d: %v", i, err)
		}
	}
	p.mu.Lock()
	p.posts = true
	p.mu.Unlock()
	for i := range rounds {
		run := status.RunID(i + 1)
		p.loseNext(i%2 == 0, cut)
		if _, err := b.Post(t.Context(), store.Message{Run: run, Kind: store.MessageVerb}); err != nil {
			t.Fatalf("post %d: %v", i, err)
		}
	}
	var runs, rows, alerts, names, keys, messages int
	err := raw(t, dsn).QueryRowContext(t.Context(), `SELECT (SELECT count(*) FROM engine.run), (SELECT count(*) FROM engine.journal), (SELECT count(*) FROM engine.alert),
		(SELECT count(*) FROM engine.run_name), (SELECT count(*) FROM engine.context), (SELECT count(*) FROM engine.inbox)`).
		Scan(&runs, &rows, &alerts, &names, &keys, &messages)
	if err != nil || runs != rounds || rows != 2*rounds || alerts != rounds || names != rounds || keys != rounds || messages != rounds {
		t.Errorf("%d runs, %d rows, %d alerts, %d names, %d keys, %d messages, err = %v, want %d of each and twice the rows",
			runs, rows, alerts, names, keys, messages, err, rounds)
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	if cuts != 3*rounds {
		t.Errorf("%d cuts, want %d: the test proves less than it says", cuts, 3*rounds)
	}
}
