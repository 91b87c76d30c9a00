package call

import (
	"reflect"
	"testing"

	"github.com/saga-engine/engine/dsl"
	"github.com/saga-engine/engine/engine/machine"
	"github.com/saga-engine/engine/sdk"
)

// soldOut is what dsl.Action.Output returns for a refused reply.
type soldOut struct{ reply dsl.Value }

func (s soldOut) Error() string { return "sold_out" }

func (s soldOut) Failure() (code, message string, permanent bool, data dsl.Value) {
	return "sold_out", "no s3cret left", true, s.reply
}

// A reply that fail_when of a declared action refuses is a definite failure, whatever the call was
// for. For a lookup it says that there was no effect.
func TestRefusedReply(t *testing.T) {
	reply := dsl.NewValue([]byte(`{"why":"s3cret"}`), nil, nil)
	output := func([]byte) (dsl.Value, error) {
		return dsl.Value{}, soldOut{reply}
	}
	plain := func([]byte) (dsl.Value, error) { return reply, nil }
	failed := machine.AttemptFailed{
		Attempt: machine.AttemptID{Node: 3, Call: 2}, Code: "sold_out", Message: "no (sensitive) left", Permanent: true,
		Data: dsl.NewValue([]byte(`{"why":"s3cret"}`), []string{"/why"}, nil),
	}
	for name, tt := range map[string]struct {
		purpose  sdk.Purpose
		forward  string
		do, undo func([]byte) (dsl.Value, error)
		want     machine.Event
	}{
		"call":           {sdk.PurposeDo, "", output, plain, failed},
		"lookup":         {sdk.PurposeLookup, "", output, plain, machine.AttemptNotDone{Attempt: failed.Attempt}},
		"undo":           {sdk.PurposeUndo, "k", plain, output, failed},
		"lookup of undo": {sdk.PurposeLookup, "k", plain, output, machine.AttemptNotDone{Attempt: failed.Attempt}},
	} {
		spec := &Spec{
			Flow:   &dsl.Workflow{Steps: []*dsl.Step{{Do: &dsl.Action{Output: tt.do}, Undo: &dsl.Undo{Do: &dsl.Action{Output: tt.undo}}}}},
			Invoke: machine.Invoke{Attempt: failed.Attempt, Purpose: tt.purpose, ForwardKey: tt.forward},
		}
		got := spec.event(sdk.Reply{Outcome: sdk.OutcomeResult, Output: []byte(`{}`)}, &redactor{secrets: []string{"s3cret"}}, 1000)
		if a, ok := got.(machine.AttemptFailed); ok {
			want := failed
			if string(a.Data.JSON()) != string(want.Data.JSON()) || !reflect.DeepEqual(a.Data.Sensitive(), want.Data.Sensitive()) {
				t.Errorf("%s: data %s, sensitive %q", name, a.Data.JSON(), a.Data.Sensitive())
			}
			a.Data = want.Data
			got = a
		}
		if !reflect.DeepEqual(got, tt.want) {
			t.Errorf("%s: event %+v, want %+v", name, got, tt.want)
		}
	}
}
