package chaos

import (
	"context"
	"database/sql"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/saga-engine/engine/engine/store"
)

// exec runs statements on the database of the World.
func (w *World) exec(statements ...string) {
	w.T.Helper()
	db, err := sql.Open("postgres", w.DSN)
	if err != nil {
		w.T.Fatal(err)
	}
	defer db.Close()
	ctx, cancel := context.WithTimeout(w.T.Context(), 30*time.Second)
	defer cancel()
	for _, s := range statements {
		if _, err := db.ExecContext(ctx, s); err != nil {
			w.T.Fatalf("%s: %v", s, err)
		}
	}
}

// waiting returns the number of submissions in the database that no engine has removed.
func (w *World) waiting() (int, error) {
	db, err := sql.Open("postgres", w.DSN)
	if err != nil {
		return 0, err
	}
	defer db.Close()
	ctx, cancel := context.WithTimeout(w.T.Context(), 30*time.Second)
	defer cancel()
	var n int
	err = db.QueryRowContext(ctx, `SELECT count(*) FROM engine.submission`).Scan(&n)
	return n, err
}

// adoptAll adds all runs of the flow to the runs that Judge checks. There must be n of them.
func (w *World) adoptAll(f Flow, n int) {
	w.T.Helper()
	rows, err := w.store.Runs(w.T.Context(), store.RunFilter{Workflow: "w"})
	if err != nil || len(rows) != n {
		w.T.Fatalf("%d runs, err = %v, want %d", len(rows), err, n)
	}
	for _, r := range rows {
		w.adopt(Run{ID: r.Run, Name: r.Name, Flow: f})
	}
}

// playSelect lets an engine die after it has started the runs of a page, but before the firing says
// so. Another engine reads the page again, and each row has one run.
func playSelect(t *testing.T, w *World, point string) {
	w.exec(`CREATE TABLE public.orders (id int PRIMARY KEY)`, `INSERT INTO public.orders SELECT generate_series(1, 12)`)
	f := heard(w.URL, `  schedule "rows" {
    cron = "0 2 1 1 *"
    select {
      sql       = "SELECT id FROM public.orders"
      key       = row.id
      strategy  = "exhaust"
      page_size = 5
    }
  }
`)
	w.must("publish", w.write("rows/w.hcl", f.Source))
	w.must("select", "start", "w.rows", "--at", "2026-03-29")
	a := w.StartEngine("a", kill(point))
	w.Await("the engine to die at "+point, time.Minute, a.Ended)
	w.Note("a is dead")
	rows, err := w.store.Runs(t.Context(), store.RunFilter{Workflow: "w"})
	if err != nil || len(rows) != 5 {
		t.Fatalf("%d runs, err = %v, want the 5 of the first page", len(rows), err)
	}
	w.StartEngine("b", "")
	w.Await("the firing to be complete", time.Minute, func() bool {
		out, code := w.Command("select", "list")
		for line := range strings.Lines(out) {
			// The first page counts once, although two engines have worked on it.
			if v := strings.Fields(line); len(v) > 3 && v[1] == "complete" && v[2] == "12" && v[3] == "12" {
				return code == 0
			}
		}
		return false
	})
	w.adoptAll(f, 12)
	w.AwaitRest(time.Minute)
}

// playTick lets an engine die after it has started the run of a tick, but before the schedule says so.
// Another engine finds the run, and the tick has only this one.
func playTick(t *testing.T, w *World, point string) {
	at := time.Now().UTC().Add(80 * time.Second).Truncate(time.Minute) // in 20 s or more: the workflow is published by then
	f := heard(w.URL, fmt.Sprintf("  schedule \"once\" {\n    cron = \"%d %d %d %d *\"\n  }\n", at.Minute(), at.Hour(), at.Day(), at.Month()))
	w.must("publish", w.write("tick/w.hcl", f.Source))
	a := w.StartEngine("a", kill(point))
	w.Await("the engine to die at "+point, 2*time.Minute, a.Ended)
	w.Note("a is dead")
	w.StartEngine("b", "")
	name := "w.once." + at.Format("20060102T150405Z")
	w.Await("the schedule to have the run "+name, time.Minute, func() bool {
		out, code := w.Command("schedule", "list")
		return code == 0 && strings.Contains(out, name)
	})
	w.adoptAll(f, 1)
	w.AwaitRest(time.Minute)
}

// playIntake lets an engine die after it has accepted submissions that programs have made with SQL,
// but before the submissions are removed. Another engine removes them, and each has one run.
func playIntake(t *testing.T, w *World, point string) {
	f := heard(w.URL, "")
	w.must("publish", w.write("intake/w.hcl", f.Source))
	w.exec(`SELECT engine.submit('w', '{}', 'sql-' || i) FROM generate_series(1, 5) i`)
	a := w.StartEngine("a", kill(point))
	w.Await("the engine to die at "+point, time.Minute, a.Ended)
	w.Note("a is dead")
	w.StartEngine("b", "")
	w.Await("the submissions to be taken", time.Minute, func() bool {
		n, err := w.waiting()
		return err == nil && n == 0
	})
	w.adoptAll(f, 5)
	w.AwaitRest(time.Minute)
}
