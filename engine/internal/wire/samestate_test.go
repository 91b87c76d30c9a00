package wire

import (
	"bytes"
	"testing"

	"github.com/saga-engine/engine/dsl"
	"github.com/saga-engine/engine/engine/internal/model"
	"github.com/saga-engine/engine/engine/machine"
	"github.com/saga-engine/engine/engine/machine/status"
)

// Two states with equal values are the same, also if the values were first found at different places.
func TestSameState(t *testing.T) {
	state := func(output string, from model.OriginKind) *machine.State {
		vars := dsl.NewValue([]byte(`{"text":"a value that is long enough to be shared"}`), nil, nil)
		n := model.NewNode(0).Box()
		n.State, n.Done, n.Known = status.StepSucceeded, true, true
		n.Output = model.StoredValue{V: dsl.NewValue([]byte(output), nil, nil), From: model.Origin{Kind: from}}
		head := &model.Head{ID: 7, Name: "o-7", Vars: model.StoredValue{V: vars}}
		return new(machine.Loader).Restore(model.Image{
			Run:   model.Run{Head: head, Rare: &model.NoRare, Steps: 1, Records: 1, Last: 5, State: status.RunRunning},
			Nodes: []*model.Node{n},
		})
	}
	const text = `{"text":"a value that is long enough to be shared"}`
	a, b := state(text, model.OriginVars), state(text, model.OriginInline)
	if bytes.Equal(AppendState(nil, a.Clone()), AppendState(nil, b.Clone())) {
		t.Error("the two images are equal, so the test shows nothing")
	}
	if !SameState(a, b) {
		t.Error("two states with equal values differ")
	}
	if SameState(a, state(`{"text":"another value"}`, model.OriginInline)) {
		t.Error("two states with different values are the same")
	}
}
