package machine_test

import (
	"flag"
	"os"
	"path/filepath"
	"testing"

	"github.com/saga-engine/engine/engine/internal/model"
	"github.com/saga-engine/engine/engine/machine"
	"github.com/saga-engine/engine/engine/machine/status"
)

var updateKin = flag.Bool("update-kin", false, "write the golden journal of a group with signals and kept effects anew")

// A journal of the run of a group folds to the same states for ever. It has the signals with which the
// run starts, the signals that it hands over to a group in it, a deadline that its parent has changed, and
// effects that child runs keep.
func TestKinGoldenJournal(t *testing.T) {
	path := filepath.Join("testdata", "journal-v3-kin.txt")
	if *updateKin {
		begin := machine.Started{Until: noon.Add(second(60)), Signals: []model.Signal{
			{Name: "go", Payload: js(`1`)}, {Name: "deep", Payload: js(`2`), By: "ann"}, {Name: "deep", Fail: "refused", Reason: "no", By: "bob"},
		}}
		p := startChild(t, flow(await("w", "go"), do("a"), do("g", groupOf(await("x", "deep")), after("a")), do("c", child, after("a"))), begin, "do a")
		p.event(machine.ParentWaits{Until: noon.Add(second(600)), By: "o-42"})
		p.ok("a", "do c", "do g")
		p.event(machine.PauseRequested{By: "ann"}, "pause g").event(machine.ResumeRequested{By: "ann"}, "resume g")
		p.event(machine.TakenOver{By: 2, From: 1}, "do c", "do g")
		p.okKeeping("g", status.KeptDeclared)
		p.failKeeping("c", status.KeptLeft|status.KeptInDoubt, "undo g")
		p.okKeeping("g", status.KeptDeclared|status.KeptUndone, "undo a")
		p.ok("a")
		if err := os.WriteFile(path, []byte(p.golden()), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	foldGolden(t, path, 3)
}

// A journal of the run of a group whose early signals have ids folds to the same states for ever.
func TestSignalIDsGoldenJournal(t *testing.T) {
	path := filepath.Join("testdata", "journal-v3-ids.txt")
	if *updateKin {
		begin := machine.Started{Until: noon.Add(second(60)), Signals: []model.Signal{
			{Name: "go", ID: "s-1", Payload: js(`1`)}, {Name: "deep", ID: "s-2", Payload: js(`2`), By: "ann"}, {Name: "deep", Payload: js(`3`)},
		}}
		p := startChild(t, flow(await("w", "go"), do("a"), do("g", groupOf(await("x", "deep")), after("a"))), begin, "do a")
		p.event(machine.SignalReceived{Name: "deep", ID: "s-2", Payload: js(`2`)}).early(2, 3)
		p.ok("a", "do g").carries("g", "2 deep", "3 deep")
		p.event(machine.PauseRequested{By: "ann"}, "pause g").event(machine.ResumeRequested{By: "ann"}, "resume g")
		for k := range int32(6) {
			p.event(machine.TakenOver{By: k + 2, From: k + 1}, "do g")
		}
		p.ok("g").is("succeeded")
		if err := os.WriteFile(path, []byte(p.golden()), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	foldGolden(t, path, 3)
}
