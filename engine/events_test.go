package engine_test

import (
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"github.com/saga-engine/engine/engine/machine/status"
	"github.com/saga-engine/engine/engine/store"
	"github.com/saga-engine/engine/engine/store/events"
)

const eventFlow = `
variable "region" { type = string }
workflow "order" {
  deadline = "1h"
  variable "id" { type = string }
  on_event "placed" {
    when      = event.data.total > 0
    variables = { id = event.data.id }
  }
  step "made" { value = "${var.id} ${var.region}" }
}
workflow "audit" {
  deadline = "1h"
  on_event "placed" {}
  step "made" { value = var.region }
}`

// S90: two and four engines start one run for each event and workflow, and record what started it.
// A bad event is quarantined.
func TestEventsStartRuns(t *testing.T) {
	for _, engines := range []int{2, 4} {
		synctest.Test(t, func(t *testing.T) {
			w := newWorld(t, eventFlow)
			w.publish()
			for range engines {
				w.start()
			}
			send := func(id, data string) {
				if sent, err := w.mem.SendEvent(t.Context(), events.Event{ID: id, Type: "placed", Data: []byte(data), By: "shop"}); err != nil || !sent {
					t.Fatalf("send %s: %t, %v", id, sent, err)
				}
			}
			for i := range 20 {
				send(fmt.Sprintf("e-%d", i), fmt.Sprintf(`{"id": "o-%d", "total": %d}`, i, i%2))
			}
			send("bad", `{"id": "o"}`)
			time.Sleep(5 * time.Minute)
			orders, audits := w.runsOf("order"), w.runsOf("audit")
			if len(orders) != 10 || len(audits) != 21 || orders["order:e-1"] != status.RunSucceeded || audits["audit:bad"] != status.RunSucceeded {
				t.Errorf("%d engines: runs = %v and %v", engines, orders, audits)
			}
			list, err := w.mem.ListEvents(t.Context(), false, 100)
			if err != nil || len(list) != 1 || list[0].ID != "bad" || list[0].Quarantined == "" {
				t.Errorf("events = %+v, %v, want the bad one", list, err)
			}
			row, err := store.Complete(w.mem).Find(t.Context(), "order:e-1")
			if err != nil {
				t.Fatal(err)
			}
			if run := w.check(row.Run).Run(); run.Trigger != "event placed e-1" || run.StartedBy != "shop" {
				t.Errorf("the run was started by %s, trigger %q", run.StartedBy, run.Trigger)
			}
		})
	}
}
