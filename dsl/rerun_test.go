package dsl

import (
	"testing"
	"time"

	"github.com/rogpeppe/go-internal/txtar"

	"github.com/saga-engine/engine/dsl/internal/noun"
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
	vars := NewValue([]byte(`{"patience":"45s"}`), nil, nil)
	want := []struct {
		step   string
		rerun  noun.Rerun
		silent time.Duration
	}{
		{"default", RerunContinue, 0},
		{"stated", RerunContinue, 45 * time.Second},
		{"undone", RerunUndoFirst, 0},
		{"blind", RerunUndoFirst, 0},
	}
	for i, w := range want {
		t.Run(w.step, func(t *testing.T) {
			s := wf.Steps[i]
			settings, err := s.Settings(&Scope{Vars: vars})
			if err != nil {
				t.Fatal(err)
			}
			if s.Name != w.step || s.OnRerun != w.rerun || settings.HeartbeatTimeout != w.silent {
				t.Errorf("got %s %q %v, want %q %v", s.Name, s.OnRerun, settings.HeartbeatTimeout, w.rerun, w.silent)
			}
		})
	}
}
