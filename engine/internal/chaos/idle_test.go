package chaos

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/lib/pq"
)

// T18: an idle engine with the default settings sends at most six statements a minute to its database,
// together with the statements that look for submissions, events, firings, schedules and replies
// (S74, S76).
func TestIdleEngineAsksLittle(t *testing.T) {
	t.Parallel()
	w := newWorld(t, 1)
	c := newCounter(t, w.DSN)
	f := heard(w.URL, "  schedule \"far\" {\n    cron = \"0 2 1 1 *\"\n  }\n  on_event \"go\" { type = \"idle.go\" }\n")
	w.must("publish", w.write("idle/w.hcl", f.Source))
	a := w.StartEngineOn(c.DSN, "a", "", "--lease", "30s")
	w.Await("the engine to serve", time.Minute, func() bool { return strings.Contains(a.Output(), "msg=serving") })
	// The pauses grow to 15 s: an engine that has just started is not idle yet.
	idle := func() bool {
		c.reset()
		time.Sleep(20 * time.Second) // the time that is counted
		return c.statements.Load() <= 6
	}
	w.Await("the engine to be idle", time.Minute, idle)
	c.reset()
	minutes := times(1, 10)
	time.Sleep(time.Duration(minutes) * time.Minute) // the time that is counted
	// A scan over the runs of other engines is a few statements at once, about once a minute.
	if n := c.statements.Load(); n > int64(6*minutes)+4 || n == 0 {
		t.Errorf("%d statements in %d minutes, want at most 6 a minute: %v", n, minutes, c.all())
	}
	report.note("T18 idle engine: %.1f statements a minute", float64(c.statements.Load())/float64(minutes))
}

// T18: the network swallows all notifications, and neither side notices. Everything that can wait in
// the database is found within the longest pause between two scans (S74, S76, I8).
func TestNotificationsAreSwallowed(t *testing.T) {
	t.Parallel()
	w := newWorld(t, 1)
	f := heard(w.URL, "  on_event \"go\" { type = \"deaf.go\" }\n  schedule \"rows\" {\n    cron = \"0 2 1 1 *\"\n    select {\n      sql = \"SELECT id FROM public.orders\"\n      key = row.id\n    }\n  }\n")
	w.exec(`CREATE TABLE public.orders (id int PRIMARY KEY)`, `INSERT INTO public.orders VALUES (1)`)
	w.must("publish", w.write("deaf/w.hcl", f.Source))
	c := newCounter(t, w.DSN)
	const longest = 4 * time.Second
	a := w.StartEngineOn(c.DSN, "a", "", "--lease", "10s", "--scan-max", longest.String())
	w.Await("the engine to serve", time.Minute, func() bool { return strings.Contains(a.Output(), "msg=serving") })
	runs := 0
	for _, way := range []struct {
		what string
		send func()
	}{
		{"a run without an owner", func() { w.Submit(f, 1) }},
		{"a submission with SQL", func() { w.exec(`SELECT engine.submit('w', '{}', 'deaf-1')`) }},
		{"an event", func() { w.exec(`SELECT engine.emit('deaf.go', '{}', 'deaf-2')`) }},
		// The command tells no other engine about a firing.
		{"a firing", func() { w.must("select", "start", "w.rows", "--at", "2026-03-29") }},
	} {
		c.deaf.Store(true)
		time.Sleep(3 * longest) // the pauses of the engine grow to their longest
		before := c.swallowed.Load()
		sent := time.Now()
		way.send()
		runs++
		w.Await(way.what+" to be found", longest, func() bool { return w.ended() == runs })
		took := time.Since(sent)
		w.Note("%s: the run has ended after %s", way.what, took)
		if c.swallowed.Load() == before && way.what != "a firing" {
			t.Errorf("void: no notification of %s was swallowed", way.what)
		}
		report.note("T18 notifications swallowed: %s was found and its run ended after %.1f s; the longest pause is %s", way.what, took.Seconds(), longest)
	}
	w.Judge()
}

// ended returns the number of runs in the database that have succeeded; -1 = not known.
func (w *World) ended() int { return w.number(`SELECT count(*) FROM engine.run WHERE state = 10`) }

// T18: a NOTIFY locks the whole database while its transaction commits. So there is none for each
// row: two engines and a program that submits runs send few, however many runs are submitted,
// claimed and ended (S74).
func TestFewNotifications(t *testing.T) {
	t.Parallel()
	w := newWorld(t, 1)
	told := make(chan *pq.Notification, 10_000)
	l, err := pq.NewListenerConn(w.DSN, told)
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	n, counted := 0, make(chan struct{})
	go func() {
		defer close(counted)
		for {
			select {
			case _, open := <-told:
				if !open {
					return // the connection is closed
				}
				n++
			case <-ctx.Done():
				return
			}
		}
	}()
	t.Cleanup(cancel)
	if _, err := l.ExecSimpleQuery("LISTEN engine_wake"); err != nil {
		t.Fatal(err)
	}
	w.StartEngine("a", "")
	w.StartEngine("b", "")
	began := time.Now()
	q := w.queue(times(1500, 15_000))
	w.Await("the runs to end", 5*time.Minute, func() bool { return w.ended() == q.runs })
	took := time.Since(began)
	if err := l.Close(); err != nil {
		t.Error(err)
	}
	cancel()
	<-counted
	commits := w.number(`SELECT count(DISTINCT xmin::text) FROM engine.journal`)
	// Each of the three programs sends at most one in 100 ms.
	if most := 3 * (int(took/(100*time.Millisecond)) + 1); n > most {
		t.Errorf("%d notifications in %s, want at most %d", n, took, most)
	}
	report.note("T18 notifications: %d of %d commits with %d rows, in %.1f s", n, commits, w.number(`SELECT count(*) FROM engine.journal`), took.Seconds())
	if n == 0 {
		t.Error("void: nothing was notified")
	}
}

// number returns the result of a query that returns one number; -1 = the query fails.
func (w *World) number(query string) int {
	n, err := w.ask(query)
	if err != nil {
		w.Note("%s: %v", query, err)
		return -1
	}
	return n
}

// note keeps a line for the report.
func (r *reported) note(format string, args ...any) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.notes = append(r.notes, fmt.Sprintf(format, args...))
}
