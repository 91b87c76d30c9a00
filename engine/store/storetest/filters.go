package storetest

import (
	"slices"
	"time"

	"github.com/saga-engine/engine/engine/machine/status"
	"github.com/saga-engine/engine/engine/store"
)

// Orphans returns a filter for open runs that have no owner or whose owner is a dead
// member.
func Orphans(after status.RunID, limit int) store.RunFilter {
	return store.RunFilter{Owners: store.OwnerDead | store.OwnerNone, After: after, Limit: limit}
}

// Abandoned returns a filter for open runs whose owner is a dead member.
func Abandoned(after status.RunID, limit int) store.RunFilter {
	return store.RunFilter{Owners: store.OwnerDead, After: after, Limit: limit}
}

// Addressed returns a filter for those open runs of dead members for which messages wait.
func Addressed(limit int) store.RunFilter {
	return store.RunFilter{Owners: store.OwnerDead, Waiting: true, Limit: limit}
}

// Overdue returns a filter for open runs of live members, except the member `self`. It selects
// only runs that are overdue for longer than `grace`: the time since next_check exceeds `grace`.
func Overdue(self store.EngineID, grace time.Duration, limit int) store.RunFilter {
	return store.RunFilter{Owners: store.OwnerOther, Asking: self, Overdue: grace, Limit: limit}
}

// IDs returns the ids of the given runs, in order, and the given error. Its arguments are
// the results of the method Runs.
func IDs(rows []store.RunRow, err error) ([]status.RunID, error) {
	var ids []status.RunID
	for _, r := range rows {
		ids = append(ids, r.Run)
	}
	return ids, err
}

var filterRules = []rule{
	{name: "filters/what no index serves is refused", why: "a filter that walks all runs would be noticed only in a store that has grown for months", run: func(w *world) {
		for name, f := range map[string]store.RunFilter{
			"a name and a state":                {Name: "n", States: []status.RunState{status.RunRunning}},
			"a name and a page":                 {Name: "n", After: 1},
			"owners and a workflow":             {Owners: store.OwnerDead, Workflow: flowName},
			"runs without an owner alone":       {Owners: store.OwnerNone},
			"messages for runs of any owner":    {Waiting: true},
			"messages, page by page":            {Owners: store.OwnerDead, Waiting: true, After: 1},
			"messages for runs without owner":   {Owners: store.OwnerDead | store.OwnerNone, Waiting: true},
			"overdue runs of any owner":         {Overdue: time.Second},
			"overdue runs of dead members":      {Owners: store.OwnerDead, Overdue: time.Second},
			"overdue runs, page by page":        {Owners: store.OwnerOther, Asking: 1, After: 1},
			"dead and other members":            {Owners: store.OwnerDead | store.OwnerOther},
			"a page of a list from both sides":  {After: 1, Before: 9},
			"a negative limit":                  {Limit: -1},
			"an owner that there is no word of": {Owners: 1 << 7},
		} {
			if got, err := w.Store.Runs(w.ctx, f); err == nil {
				w.Errorf("%s: %d runs, want a refusal", name, len(got))
			}
		}
	}},
	{name: "filters/messages are read page by page", why: "a run with many messages must not be answered with all of them in memory", run: func(w *world) {
		run := w.started(w.join(w.Store, 1), 1)[0]
		var want, got []store.MessageID
		for range 5 {
			id, err := w.Store.Post(w.ctx, store.Message{Run: run, Kind: store.MessageVerb, By: "ann", Data: []byte{1}})
			if err != nil {
				w.Fatal(err)
			}
			want = append(want, id)
		}
		for after := store.MessageID(0); ; after = got[len(got)-1] {
			page, err := w.Other.Messages(w.ctx, run, after, 2)
			if err != nil || len(page) > 2 {
				w.Fatalf("%d messages, err = %v, want at most 2", len(page), err)
			}
			if len(page) == 0 {
				break
			}
			for _, m := range page {
				got = append(got, m.ID)
			}
		}
		if !slices.Equal(got, want) {
			w.Errorf("messages %v, want %v", got, want)
		}
	}},
}

// Each function below reports whether the store under test has an optional role.
func hasPasses(h Harness) bool   { _, ok := h.Store.(store.Passes); return ok }
func hasHands(h Harness) bool    { _, ok := h.Store.(store.Hands); return ok }
func hasEvidence(h Harness) bool { _, ok := h.Store.(store.Evidence); return ok }
func hasViews(h Harness) bool    { _, ok := h.Store.(store.Views); return ok }

// needed returns a copy of the given rules. The copied rules apply only to stores for which the
// function `role` returns true.
func needed(role func(Harness) bool, rules []rule) []rule {
	rules = slices.Clone(rules)
	for i, r := range rules {
		rules[i].need = func(h Harness) bool { return role(h) && (r.need == nil || r.need(h)) }
	}
	return rules
}
