package postgres

import (
	"context"
	"testing"
	"time"

	"github.com/lib/pq"

	"github.com/saga-engine/engine/engine/machine/status"
	"github.com/saga-engine/engine/engine/store"
	"github.com/saga-engine/engine/engine/store/naming"
	"github.com/saga-engine/engine/engine/store/storetest"
)

// awaitHint waits for a hint and then until no more come.
func awaitHint(t *testing.T, hints <-chan struct{}, why string) {
	t.Helper()
	select {
	case <-hints:
	case <-time.After(20 * time.Second):
		t.Fatalf("no hint %s", why)
	}
	for {
		select {
		case <-hints:
		case <-time.After(3 * wakePause):
			return
		}
	}
}

func post(t *testing.T, b *bench, run status.RunID) {
	t.Helper()
	if _, err := b.Post(t.Context(), store.Message{Run: run, Kind: store.MessageVerb}); err != nil {
		t.Fatal(err)
	}
}

// S74 S76, T18: messages and runs of nobody wake others; a connection that is cut, or
// that a network forgets without a word, is made again; nothing stands once the
// listener has gone.
func TestWakes(t *testing.T) {
	dsn := migrated(t)
	p, through := newProxy(t, dsn)
	b, other := newBench(t, dsn), open(t, through)
	other.probe, other.probeEvery = 200*time.Millisecond, 2*time.Second
	if err := b.commit(t.Context(), b.create(1)); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	hints := other.Wakes(ctx)
	awaitHint(t, hints, "at the beginning")

	post(t, b, 1)
	awaitHint(t, hints, "for a message")
	nobody := b.create(2)
	nobody.Owner = new(store.EngineID)
	if _, err := storetest.Submit(t.Context(), b.w, nobody, naming.Names{}); err != nil {
		t.Fatal(err)
	}
	awaitHint(t, hints, "for a run of nobody")

	p.silence()
	awaitHint(t, hints, "after the connection went silent")
	post(t, b, 1)
	awaitHint(t, hints, "for a message after that")
	p.cut(func(*link) bool { return true })
	awaitHint(t, hints, "after the connection was cut")

	cancel()
	for range hints {
	}
}

// S74, T18: notifications are few, however much is said: each takes a lock of the
// whole database. The last of a burst is told too.
func TestNotificationsAreCoalesced(t *testing.T) {
	dsn := migrated(t)
	b := newBench(t, dsn)
	if err := b.commit(t.Context(), b.create(1)); err != nil {
		t.Fatal(err)
	}
	told := make(chan *pq.Notification, 1000)
	l, err := pq.NewListenerConn(dsn, told)
	if err != nil {
		t.Fatal(err)
	}
	defer hangUp(l, told)
	if _, err := l.ExecSimpleQuery(wakeListen); err != nil {
		t.Fatal(err)
	}
	start := time.Now()
	for range 100 {
		post(t, b, 1)
	}
	n := 0
	for quiet := false; !quiet; {
		select {
		case <-told:
			n++
		case <-time.After(5 * wakePause):
			quiet = true
		}
	}
	if most := int(time.Since(start)/wakePause) + 1; n < 2 || n > most {
		t.Errorf("%d notifications of 100 messages, want 2 to %d", n, most)
	}
	// A commit of the owner tells nobody.
	if err := b.commit(t.Context(), store.Transition{Run: 1, Seq: 1, At: at, Data: []byte("1")}); err != nil {
		t.Fatal(err)
	}
	select {
	case <-told:
		t.Error("a commit notified others")
	case <-time.After(3 * wakePause):
	}
}

// S54, S74, T18: a transaction with submissions notifies engines once, and only if no other one was made in
// the last second and still waits. If a savepoint takes back the submission that notifies, the next one in
// the transaction notifies. Statements that send events notify by the same rule.
func TestSubmissionsAndEventsNotifyOnce(t *testing.T) {
	dsn := migrated(t)
	publishedWorkflow(t, dsn)
	db := raw(t, dsn)
	told := make(chan *pq.Notification, 1000)
	l, err := pq.NewListenerConn(dsn, told)
	if err != nil {
		t.Fatal(err)
	}
	defer hangUp(l, told)
	if _, err := l.ExecSimpleQuery(wakeListen); err != nil {
		t.Fatal(err)
	}
	const (
		submit = `SELECT engine.submit('w', '{"n":1}') FROM generate_series(1, 5);`
		send   = `INSERT INTO engine.events (type) SELECT 'x' FROM generate_series(1, 5);`
	)
	for _, c := range []struct {
		what, do string
		want     int
	}{
		{"a transaction", submit + submit, 1},
		{"a transaction just after another", `UPDATE engine.submission SET submitted_at = clock_timestamp() + interval '1 minute';` + submit, 0},
		{"a transaction while old submissions wait", `UPDATE engine.submission SET submitted_at = clock_timestamp() - interval '2 seconds';` + submit, 1},
		{"a savepoint that is rolled back", `DELETE FROM engine.submission; SAVEPOINT a;` + submit + `ROLLBACK TO a;` + submit, 1},
		{"a later transaction", `DELETE FROM engine.submission;` + submit, 1},
		{"events", send, 1},
		{"events just after others", `UPDATE engine.events SET sent_at = clock_timestamp() + interval '1 minute';` + send, 0},
		{"events while old ones wait", `UPDATE engine.events SET sent_at = clock_timestamp() - interval '2 seconds';` + send, 1},
		{"no events", `INSERT INTO engine.events (type) SELECT 'x' WHERE false;`, 0},
	} {
		must(t, db, `BEGIN;`+c.do+`COMMIT`)
		must(t, db, `SELECT pg_notify('engine_wake', 'end')`)
		for n := 0; ; n++ {
			select {
			case x := <-told:
				if x.Extra != "end" {
					continue
				}
				if n != c.want {
					t.Errorf("%s: %d notifications, want %d", c.what, n, c.want)
				}
			case <-time.After(20 * time.Second):
				t.Fatalf("%s: no notification", c.what)
			}
			break
		}
	}
}
