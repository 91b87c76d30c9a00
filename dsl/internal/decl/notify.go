package decl

import (
	"fmt"
	"slices"
	"strings"

	"github.com/hashicorp/hcl/v2"
	"github.com/zclconf/go-cty/cty"

	"github.com/saga-engine/engine/dsl/diag"
	"github.com/saga-engine/engine/dsl/internal/eval"
	"github.com/saga-engine/engine/dsl/internal/noun"
	"github.com/saga-engine/engine/dsl/internal/syntax"
	"github.com/saga-engine/engine/dsl/internal/value"
)

// A notifyDecoder reads notify blocks.
type notifyDecoder struct{ *decoder }

// read makes the workflow of a notification from a notify block, and adds the block to w.Notifies.
func (d notifyDecoder) read(w *Workflow, b *syntax.Block) {
	yes := true // the engine may send a notification twice, so each action counts as safe to repeat
	s := &Step{
		Name: noun.NotifyStep, Where: b.DefRange, Block: b, After: map[int]hcl.Range{}, OutputType: cty.NilType, InputAt: b.DefRange,
		NoUndo: true, Idempotent: &yes,
	}
	s.Agent, s.Action, s.ActionAt = d.action(b)
	if c := b.One("input"); c != nil {
		s.Input, s.InputAt = c.Args, c.DefRange
	}
	w.Notifies = append(w.Notifies, &Notify{On: d.announced(b.Attr("on")), Flow: &Workflow{
		Name: noun.NotifyName(w.Name, len(w.Notifies)), Where: b.DefRange, Twin: w.Twin, Block: b, Mode: noun.ModeAutomatic, Retention: w.Retention,
		Variables: w.Variables, Locals: w.Locals, Steps: []*Step{s}, Index: map[string]int{s.Name: 0}, Order: []int{0},
	}})
}

// announced reads the argument `on` of a notify block: a list of states. It reports an empty list,
// each word that is not a state, and each state that is in the list twice.
func (d notifyDecoder) announced(e *eval.Expr) []string {
	if e == nil {
		return nil
	}
	v, ok := d.lit.literal(e, "on")
	if !ok {
		return nil
	}
	states, err := value.StringsOf(v)
	if err != nil || len(states) == 0 {
		d.Errorf(e.Range, "Invalid value for on", "on is a list of states: %s.", stateList())
		return nil
	}
	var out []string
	for _, state := range states {
		switch {
		case slices.Contains(out, state):
			d.Errorf(e.Range, "Duplicate state", "on holds %q twice. Remove one of them.", state)
		case !slices.Contains(noun.NotifyStates, state):
			d.Errorf(e.Range, "Invalid value for on", "There is no state %q to notify of.%s The states are %s.",
				state, diag.DidYouMean(state, noun.NotifyStates), stateList())
		default:
			out = append(out, state)
		}
	}
	return out
}

// stateList returns the states that a notify block can announce, for messages.
func stateList() string {
	quoted := make([]string, len(noun.NotifyStates))
	for i, state := range noun.NotifyStates {
		quoted[i] = fmt.Sprintf("%q", state)
	}
	return strings.Join(quoted, ", ")
}
