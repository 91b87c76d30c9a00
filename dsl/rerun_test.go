package dsl

import (
	"testing"
	"time"

	"github.com/rogpeppe/go-internal/txtar"

	"github.com/saga-engine/engine/dsl/internal/eval"
	"github.com/saga-engine/engine/dsl/internal/noun"
	"github.com/saga-engine/engine/dsl/internal/value"
)

// S83: what on_rerun and heartbeat_timeout come to, with the schema's default.
func TestRerunOfLinkedSteps(t *testing.T) {
	a, err := txtar.ParseFile("testdata/valid/rerun.txtar")
	if err != nil {
		t.Fatal(err)
	}
	def, diags := parseAndLink(archiveFS(a))
	if def == nil {
		t.Fatal(diags.Err())
	}
	wf := def.Workflow("w")
	vars := value.NewValue([]byte(`{"patience":"45s"}`), nil, nil)
	want := []struct {
		step   string
		rerun  noun.Rerun
		silent time.Duration
	}{
		{"default", noun.RerunContinue, 0},
		{"stated", noun.RerunContinue, 45 * time.Second},
		{"undone", noun.RerunUndoFirst, 0},
		{"blind", noun.RerunUndoFirst, 0},
	}
	for i, w := range want {
		t.Run(w.step, func(t *testing.T) {
			s := wf.Steps[i]
			settings, err := s.Settings(&eval.Scope{Vars: vars})
			if err != nil {
				t.Fatal(err)
			}
			if s.Name != w.step || s.OnRerun != w.rerun || settings.HeartbeatTimeout != w.silent {
				t.Errorf("got %s %q %v, want %q %v", s.Name, s.OnRerun, settings.HeartbeatTimeout, w.rerun, w.silent)
			}
		})
	}
}
