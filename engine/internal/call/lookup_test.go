package call

import (
	"reflect"
	"testing"
	"time"

	"github.com/saga-engine/engine/dsl"
	"github.com/saga-engine/engine/engine/machine"
	"github.com/saga-engine/engine/sdk"
)

// asking returns a step whose action, and whose undo, are asked about with another action.
func asking() *dsl.Step {
	action := func(result string) *dsl.Action {
		return &dsl.Action{Output: func([]byte) (dsl.Value, error) { return dsl.NewValue([]byte(result), nil, nil), nil }}
	}
	do, undo := action(`"do"`), action(`"undo"`)
	do.Asks, undo.Asks = action(`"found"`), action(`"gone"`)
	return &dsl.Step{Do: do, Undo: &dsl.Undo{Do: undo}}
}

// The agent sees an ordinary call of the other action, with a key of its own. All other calls keep
// their purpose and their keys.
func TestAgentSeesAnOrdinaryCall(t *testing.T) {
	for name, c := range map[string]struct {
		step    *dsl.Step
		invoke  machine.Invoke
		purpose sdk.Purpose
		keys    [2]string
	}{
		"call":                {asking(), machine.Invoke{Purpose: sdk.PurposeDo, IdempotencyKey: "k"}, sdk.PurposeDo, [2]string{"k"}},
		"undo":                {asking(), machine.Invoke{Purpose: sdk.PurposeUndo, IdempotencyKey: "u", ForwardKey: "k"}, sdk.PurposeUndo, [2]string{"u", "k"}},
		"lookup":              {asking(), machine.Invoke{Purpose: sdk.PurposeLookup, IdempotencyKey: "k"}, sdk.PurposeDo, [2]string{"k:lookup", "k"}},
		"lookup of the undo":  {asking(), machine.Invoke{Purpose: sdk.PurposeLookup, IdempotencyKey: "u", ForwardKey: "k"}, sdk.PurposeDo, [2]string{"u:lookup", "u"}},
		"lookup of the agent": {&dsl.Step{Do: &dsl.Action{}}, machine.Invoke{Purpose: sdk.PurposeLookup, IdempotencyKey: "k"}, sdk.PurposeLookup, [2]string{"k"}},
		"value":               {&dsl.Step{}, machine.Invoke{Purpose: sdk.PurposeLookup, IdempotencyKey: "k"}, sdk.PurposeLookup, [2]string{"k"}},
	} {
		spec := &Spec{Flow: &dsl.Workflow{Steps: []*dsl.Step{c.step}}, Invoke: c.invoke}
		if purpose, key, forward := spec.asAgentSees(); purpose != c.purpose || key != c.keys[0] || forward != c.keys[1] {
			t.Errorf("%s: purpose %d, key %q, forward key %q", name, purpose, key, forward)
		}
	}
}

// not_found says that there was no effect. Every other failure of the lookup says nothing about the
// call that it asks about.
func TestAnswersOfALookup(t *testing.T) {
	id := machine.AttemptID{Node: 3, Call: 2}
	unknown := machine.AttemptUnknown{Attempt: id, Code: "denied", Message: "no (sensitive)", RetryAfter: time.Second}
	found := machine.AttemptOK{Attempt: id, Output: dsl.NewValue([]byte(`"found"`), nil, nil)}
	gone := machine.AttemptOK{Attempt: id, Output: dsl.NewValue([]byte(`"gone"`), nil, nil)}
	notFound := sdk.Reply{Outcome: sdk.OutcomeFailed, Code: "not_found"}
	for name, c := range map[string]struct {
		invoke machine.Invoke
		reply  sdk.Reply
		want   machine.Event
	}{
		"found":     {machine.Invoke{Purpose: sdk.PurposeLookup}, sdk.Reply{Outcome: sdk.OutcomeResult, Output: []byte("{}")}, found},
		"gone":      {machine.Invoke{Purpose: sdk.PurposeLookup, ForwardKey: "k"}, sdk.Reply{Outcome: sdk.OutcomeResult, Output: []byte("{}")}, gone},
		"not found": {machine.Invoke{Purpose: sdk.PurposeLookup}, notFound, machine.AttemptNotDone{Attempt: id}},
		"refused": {machine.Invoke{Purpose: sdk.PurposeLookup}, sdk.Reply{
			Outcome: sdk.OutcomeFailed, Code: "denied", Message: "no s3cret", Permanent: true, RetryAfter: time.Second,
		}, unknown},
		"of the call itself": {machine.Invoke{Purpose: sdk.PurposeDo}, notFound, machine.AttemptFailed{Attempt: id, Code: "not_found"}},
	} {
		c.invoke.Attempt = id
		spec := &Spec{Flow: &dsl.Workflow{Steps: []*dsl.Step{asking()}}, Invoke: c.invoke}
		if got := spec.event(c.reply, &redactor{secrets: []string{"s3cret"}}, 1000); !reflect.DeepEqual(got, c.want) {
			t.Errorf("%s: %+v, want %+v", name, got, c.want)
		}
	}
}
