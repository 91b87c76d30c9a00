package chaos

import (
	"context"
	"strings"
	"testing"
	"time"

	"github.com/saga-engine/engine/engine/machine/status"
	"github.com/saga-engine/engine/engine/store"
	"github.com/saga-engine/engine/engine/store/notice"
)

// announces has two calls, and announces its end with a third.
func announces(url string) Flow {
	withNotify := func(b *strings.Builder, url string) {
		head(b, url)
		b.WriteString("  notify {\n    on     = [\"succeeded\"]\n    action = agent.far.do\n    input { faults = \"refuse\" }\n  }\n")
	}
	return flowOf(url, withNotify,
		flowStep{Step{Name: "s0", Action: "do"}, "", "", ""},
		flowStep{Step{Name: "s1", Action: "do", After: []int{0}}, "", "", ""},
	)
}

// playNotify lets an engine die while it announces the end of runs. Each end has one notification,
// and that arrives.
func playNotify(t *testing.T, w *World, point string) {
	w.Submit(announces(w.URL), 2)
	rescue(w, w.StartEngine("a", kill(point)), point)
	for _, r := range w.Runs() {
		w.Await("the notification of "+r.Name, time.Minute, func() bool {
			ctx, cancel := context.WithTimeout(context.WithoutCancel(t.Context()), 5*time.Second)
			defer cancel()
			row, err := w.store.Find(ctx, r.Name)
			if err != nil {
				return false
			}
			sent, err := notice.Find(ctx, w.store, row, nil)
			return err == nil && len(sent) == 1 && sent[0].Done && len(sent[0].Notifications) == 1 && sent[0].Notifications[0].State == status.RunSucceeded
		})
	}
	all, err := w.store.Runs(context.WithoutCancel(t.Context()), store.RunFilter{Workflow: "w.notify"})
	if err != nil || len(all) != len(w.Runs()) {
		t.Errorf("%d notifications of %d runs: %v", len(all), len(w.Runs()), err)
	}
}
