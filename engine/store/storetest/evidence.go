package storetest

import (
	"fmt"
	"reflect"
	"slices"
	"sync"
	"time"

	"github.com/saga-engine/engine/engine/machine/status"
	"github.com/saga-engine/engine/engine/store"
	"github.com/saga-engine/engine/engine/store/naming"
	"github.com/saga-engine/engine/engine/store/storekit"
)

var evidenceRules = []rule{
	{name: "late/is kept once, with an alert", why: "an answer that came too late changes nothing, but people must be able to see and use it (S28)", run: func(w *world) {
		a := w.join(w.Store, 1)
		ids := w.started(a, 2)
		before, _ := w.load(ids[0])
		replies := []store.LateReply{
			{Run: ids[0], Node: 1, Call: 2, Step: "charge", At: base.Add(time.Minute), Outcome: "ok", Data: []byte{0, 255}},
			{Run: ids[0], Node: 1, Call: 2, Step: "charge", At: base, Outcome: "failed", Code: "declined", Data: []byte("x")},
			{Run: ids[0], Node: 0, Call: 2, Step: "a\x00", At: base.Add(time.Hour), Outcome: "ok"},
			{Run: ids[1], Node: 1, Call: 2, Step: "charge", At: base, Outcome: "ok", Data: []byte("y")},
		}
		var wg sync.WaitGroup
		for i := range 4 { // several engines may store the same late reply at the same time
			wg.Go(func() {
				for _, l := range replies {
					if err := []store.Full{w.Store, w.Other}[i%2].KeepLate(w.ctx, l); err != nil {
						w.Errorf("keep late: %v", err)
					}
				}
			})
		}
		wg.Wait()
		again := replies[0]
		again.At, again.Data = base.Add(24*time.Hour), []byte("another time")
		if err := w.Store.KeepLate(w.ctx, again); err != nil {
			w.Errorf("keep late: %v", err)
		}
		replies[2].Step = "a\uFFFD"
		got, err := w.Other.LateReplies(w.ctx, ids[0])
		for i := range got {
			if len(got[i].Data) == 0 {
				got[i].Data = nil
			}
		}
		if want := []store.LateReply{replies[1], replies[0], replies[2]}; err != nil || !reflect.DeepEqual(got, want) {
			w.Errorf("late replies = %+v, err = %v\nwant %+v", got, err, want)
		}
		t := next(ids[0], 1)
		t.Alerts = []store.Alert{{Kind: "parked", Step: "charge"}}
		t.At = base.Add(2 * time.Hour)
		w.land(a.writers[0], t)
		alerts, err := w.Other.Alerts(w.ctx, ids[0], 10)
		if err != nil || len(alerts) != 4 {
			w.Fatalf("alerts = %+v, err = %v, want 4", alerts, err)
		}
		if alerts[0].Kind != "parked" {
			w.Errorf("newest alert = %+v, want the parked one", alerts[0])
		}
		for i, l := range []store.LateReply{replies[2], replies[0], replies[1]} {
			g := alerts[i+1]
			if g.Alert != l.Alert() || g.Kind != "late_reply" || g.Step != l.Step || g.Code != l.Code || !g.At.Equal(l.At) || g.Run != ids[0] || g.Name != before.Name || g.Workflow != flowName || g.ID == 0 {
				w.Errorf("alert = %+v, want one of %+v", g, l)
			}
		}
		if h, rows := w.load(ids[0]); h != before || len(rows) != 2 {
			w.Errorf("head = %+v with %d rows: a late answer changed the run", h, len(rows))
		}
		if got, err := w.Store.LateReplies(w.ctx, 77); err != nil || len(got) != 0 {
			w.Errorf("late replies of no run = %+v, err = %v", got, err)
		}
	}},
	{name: "logs/are kept in order, by run", why: "what an agent said is read beside what the run did, and read on from where one stopped", run: func(w *world) {
		a := w.join(w.Store, 1)
		ids := w.started(a, 2)
		want := []store.LogLine{
			{Run: ids[0], At: base.Add(time.Second), Step: "charge", Attempt: 2, Level: "warn", Message: "slow"},
			{Run: ids[0], At: base, Step: "charge", Attempt: 1, Level: "info", Message: "m\x00"},
			{Run: ids[0], At: base.Add(time.Hour), Step: "ship", Attempt: 70000, Level: "error", Message: "'; DROP TABLE log"},
		}
		other := store.LogLine{Run: ids[1], At: base, Step: "x", Level: "debug"}
		none := store.LogLine{Run: 77, At: base, Level: "info", Message: "of no run"}
		for _, lines := range [][]store.LogLine{{want[0], other, none, want[1]}, nil, {want[2]}} {
			if err := w.Store.KeepLogs(w.ctx, lines); err != nil {
				w.Fatalf("keep logs: %v", err)
			}
		}
		want[1].Message = "m\uFFFD"
		got, err := w.Other.Logs(w.ctx, ids[0], 0, 10)
		if err != nil || len(got) != 3 {
			w.Fatalf("logs = %+v, err = %v, want 3", got, err)
		}
		rest, err := w.Other.Logs(w.ctx, ids[0], got[0].ID, 1)
		if err != nil || len(rest) != 1 || rest[0] != got[1] {
			w.Errorf("the line after the first = %+v, err = %v, want %+v", rest, err, got[1])
		}
		for i := range got {
			if got[i].ID <= 0 || i > 0 && got[i].ID <= want[i-1].ID {
				w.Errorf("line %d has id %d, want a rising one", i, got[i].ID)
			}
			want[i].ID = got[i].ID
		}
		if !slices.Equal(got, want) {
			w.Errorf("logs = %+v\nwant %+v", got, want)
		}
		for run, n := range map[status.RunID]int{ids[1]: 1, 77: 0} {
			if got, err := w.Other.Logs(w.ctx, run, 0, 10); err != nil || len(got) != n {
				w.Errorf("logs of run %d = %+v, err = %v, want %d", run, got, err, n)
			}
		}
	}},
	{name: "logs/are capped", why: "an agent that never stops talking must not fill the disk; the last lines are what one needs", run: func(w *world) {
		a := w.join(w.Store, 1)
		ids := w.started(a, 2)
		const rounds, each = 14, storekit.MaxLogLines / 4
		line := 0
		for range rounds {
			batch := []store.LogLine{{Run: ids[1], At: base, Level: "info", Message: "quiet"}}
			for range each {
				batch = append(batch, store.LogLine{Run: ids[0], At: base, Level: "info", Message: fmt.Sprint(line)})
				line++
			}
			if err := w.Store.KeepLogs(w.ctx, batch); err != nil {
				w.Fatalf("keep logs: %v", err)
			}
		}
		got, err := w.Other.Logs(w.ctx, ids[0], 0, rounds*each)
		if err != nil || len(got) != storekit.MaxLogLines {
			w.Fatalf("%d lines, err = %v, want %d", len(got), err, storekit.MaxLogLines)
		}
		for i, l := range got {
			if want := fmt.Sprint(line - len(got) + i); l.Message != want {
				w.Fatalf("line %d of %d is %q, want %q: the last ones, without a gap", i, len(got), l.Message, want)
			}
		}
		if got, err := w.Other.Logs(w.ctx, ids[1], 0, 100); err != nil || len(got) != rounds {
			w.Errorf("%d lines of the quiet run, err = %v, want %d", len(got), err, rounds)
		}
	}},
	{name: "logs/are capped within one call", why: "an agent may say more between two calls than is kept of a run", run: func(w *world) {
		a := w.join(w.Store, 1)
		ids := w.started(a, 2)
		const many = 3*storekit.MaxLogLines + 7
		var batch []store.LogLine
		for i := range many {
			batch = append(batch, store.LogLine{Run: ids[0], At: base, Level: "info", Message: fmt.Sprint(i)})
		}
		batch = append(batch, store.LogLine{Run: ids[1], At: base, Level: "info", Message: "quiet"})
		if err := w.Store.KeepLogs(w.ctx, batch); err != nil {
			w.Fatalf("keep logs: %v", err)
		}
		got, err := w.Other.Logs(w.ctx, ids[0], 0, many)
		if err != nil || len(got) != storekit.MaxLogLines || got[0].Message != fmt.Sprint(many-storekit.MaxLogLines) {
			w.Fatalf("%d lines, err = %v, want the last %d", len(got), err, storekit.MaxLogLines)
		}
		if got, err := w.Other.Logs(w.ctx, ids[1], 0, many); err != nil || len(got) != 1 {
			w.Errorf("%d lines of the quiet run, err = %v, want 1", len(got), err)
		}
	}},
	{name: "outbox/alerts are pushed at least once", why: "an alert reaches a person although the engine that pushes it crashes in between (S62)", run: func(w *world) {
		a := w.join(w.Store, 1)
		n := naming.Names{Name: "order-9", Workflow: flowName, Key: "k-9"}
		run := w.submit(a.writers[0], w.create(a), n).Run
		for seq := int32(1); seq <= 3; seq++ {
			t := next(run, seq)
			t.Alerts = []store.Alert{{Kind: "parked", Step: fmt.Sprint(seq)}, {Kind: "overdue", Step: fmt.Sprint(seq)}}
			w.land(a.writers[0], t)
		}
		if err := w.Store.KeepLate(w.ctx, store.LateReply{Run: run, Step: "old", At: base.Add(-time.Hour), Outcome: "ok"}); err != nil {
			w.Fatal(err)
		}
		all, err := w.Other.Undelivered(w.ctx, 100)
		if err != nil || len(all) != 7 {
			w.Fatalf("undelivered = %+v, err = %v, want 7", all, err)
		}
		for i, g := range all {
			if g.Run != run || g.Name != "order-9" || g.Workflow != flowName || g.Key != "k-9" || i > 0 && g.ID <= all[i-1].ID {
				w.Errorf("alert %d = %+v, want rising ids and the run's names", i, g)
			}
		}
		listed, err := w.Other.Alerts(w.ctx, run, 100)
		slices.SortFunc(listed, func(a, b store.AlertRow) int { return int(a.ID - b.ID) })
		if err != nil || !slices.Equal(listed, all) {
			w.Errorf("alerts = %+v, err = %v, want the undelivered ones %+v", listed, err, all)
		}
		if got, err := w.Other.Undelivered(w.ctx, 2); err != nil || !slices.Equal(got, all[:2]) {
			w.Errorf("two undelivered = %+v, err = %v, want the oldest", got, err)
		}
		for range 2 {
			if err := w.Other.Delivered(w.ctx, []int64{all[3].ID, all[0].ID, all[6].ID + 1000}); err != nil {
				w.Errorf("delivered: %v", err)
			}
		}
		if err := w.Other.Delivered(w.ctx, nil); err != nil {
			w.Errorf("nothing delivered: %v", err)
		}
		want := slices.Concat(all[1:3], all[4:])
		if got, err := w.Store.Undelivered(w.ctx, 100); err != nil || !slices.Equal(got, want) {
			w.Errorf("undelivered = %+v, err = %v, want %+v", got, err, want)
		}
		if got, err := w.Other.Alerts(w.ctx, 0, 100); err != nil || len(got) != 7 {
			w.Errorf("%d alerts, err = %v: a pushed alert is still listed", len(got), err)
		}
	}},
}
