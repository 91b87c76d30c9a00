package cluster

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/saga-engine/engine/engine/crypt"
	"github.com/saga-engine/engine/engine/internal/owner"
	"github.com/saga-engine/engine/engine/journal"
	"github.com/saga-engine/engine/engine/machine"
	"github.com/saga-engine/engine/engine/machine/status"
	"github.com/saga-engine/engine/engine/store"
)

// mayAlert reports whether an alert about the run is due. It is not if there was one since
// the run last moved. Nor is it if other engines continue runs of the same workflow:
// then this run only has to wait for one of them.
func (t *unstaffed) mayAlert(ctx context.Context, a *owner.UnstaffedDecision, elsewhere func(string) (bool, error)) (bool, error) {
	alerts, err := t.n.cfg.Store.Alerts(ctx, a.Head.Run, 20)
	if err != nil {
		return false, fmt.Errorf("look for an alert: %w", err)
	}
	since, err := moved(&a.Unstaffed, t.n.cfg.Sealer)
	if err != nil {
		return false, err
	}
	for _, al := range alerts {
		if al.Kind == "overdue" && al.Code == AlertAgentMissing && !al.At.Before(since) {
			a.Told = true
			return false, nil
		}
	}
	busy, err := elsewhere(a.Story.Flow.Name)
	return !busy, err
}

// moved returns when something other than the passing of time last moved the run. An
// engine without the run's agents may have recorded that time has passed; that is no news.
func moved(x *owner.Unstaffed, sealer crypt.Sealer) (time.Time, error) {
	for i := len(x.Rows) - 1; i > 0; i-- {
		records, err := journal.DecodeRow(sealer, x.Head.Run, x.Rows[i])
		if err != nil {
			return time.Time{}, err
		}
		for _, rec := range records {
			if _, passed := rec.Event().(machine.TimePassed); !passed {
				return x.Rows[i].At, nil
			}
		}
	}
	return x.Rows[0].At, nil
}

// missingAgentsMessage says which agents are missing, and which engines were seen.
func missingAgentsMessage(x *owner.Unstaffed, self store.EngineID, live []store.Member) string {
	var missing []string
	for _, agent := range slices.Sorted(maps.Keys(x.Why)) {
		name := x.Specs[agent].Plugin
		if v := x.Specs[agent].Version; v != "" {
			name += " " + v
		}
		missing = append(missing, fmt.Sprintf("%s (%s)", name, x.Why[agent]))
	}
	var seen []string
	for i, m := range live {
		if i == maxSeen {
			seen = append(seen, fmt.Sprintf("%d more", len(live)-i))
			break
		}
		seen = append(seen, fmt.Sprintf("engine %d at %s", m.Engine, m.Address))
	}
	return fmt.Sprintf("no engine goes on with the run; engine %d lacks agent %s; engines seen: %s",
		self, strings.Join(missing, ", "), strings.Join(seen, ", "))
}

// elsewhere returns a function that reports whether other live engines have runs of a
// workflow in progress: then one of them has its agents. It asks once for each workflow.
func (t *unstaffed) elsewhere(ctx context.Context) func(flow string) (bool, error) {
	known := map[string]bool{}
	return func(flow string) (bool, error) {
		if busy, ok := known[flow]; ok {
			return busy, nil
		}
		rows, err := t.n.cfg.Store.Runs(ctx, store.RunFilter{
			Workflow: flow, States: []status.RunState{status.RunRunning, status.RunWaiting, status.RunCompensating}, Limit: 1000,
		})
		if err != nil {
			return false, fmt.Errorf("look for runs of workflow %q in progress: %w", flow, err)
		}
		known[flow] = slices.ContainsFunc(rows, func(r store.RunRow) bool { return r.OwnerAlive && r.Owner != 0 && r.Owner != t.engine })
		return known[flow], nil
	}
}
