package cli

import (
	"bytes"
	"strings"
	"testing"

	"github.com/saga-engine/engine/engine/machine/status"
	"github.com/saga-engine/engine/engine/store"
)

// An alert about the run that a view shows is left out, however early it comes;
// those about others stay. Runs go by their public names (S59).
func TestAlertsBesideAView(t *testing.T) {
	var out bytes.Buffer
	a := &App{Stderr: &out}
	log := a.Logger()
	mine := store.RunRow{Head: store.Head{Run: 7, Name: "mine"}}
	alert := func(run any) { log.Warn("alert", "run", run, "kind", "parked") }

	a.Runs.Name(store.RunRow{Head: store.Head{Run: 8, Name: "other"}})
	a.Runs.Expect()
	alert(status.RunID(7))
	alert("mine")
	alert(status.RunID(8))
	if out.Len() > 0 {
		t.Errorf("written before it is known which run is shown:\n%s", &out)
	}
	a.Runs.Follow(mine)
	alert(status.RunID(7))
	alert("mine")
	alert(status.RunID(9))
	log.With("part", "x").Warn("alert", "run", "mine")
	log.Warn("something else", "run", status.RunID(7))
	want := []string{"msg=alert run=other kind=parked", "msg=alert run=9 kind=parked", "msg=\"something else\" run=mine"}
	lines := strings.Split(strings.TrimSpace(out.String()), "\n")
	if len(lines) != len(want) {
		t.Fatalf("got:\n%s", &out)
	}
	for i, w := range want {
		if !strings.HasSuffix(lines[i], w) {
			t.Errorf("line %d: %s, want …%s", i, lines[i], w)
		}
	}
	out.Reset()
	a.Runs.Release()
	alert("mine")
	if !strings.Contains(out.String(), "run=mine") {
		t.Errorf("nothing shows the run any more, but the alert is left out: %q", &out)
	}
}
