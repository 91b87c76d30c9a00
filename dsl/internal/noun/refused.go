package noun

import "github.com/saga-engine/engine/dsl/internal/value"

// A Refused is the error of Action.Output if a fail_when block of a declared action is true for a
// reply. The author of the action guarantees that the call had no effect. So the reply counts as a
// definite failure.
type Refused struct {
	Code      string
	Message   string
	Permanent bool        // true = the engine does not repeat the call
	Data      value.Value // reply of the agent; expressions read it as error.data
}

// Error returns the code and the message of the failure.
func (r *Refused) Error() string { return r.Code + ": " + r.Message }

// Failure returns the fields of r. Packages outside of dsl cannot name the type Refused, so they
// recognise the error by this method.
func (r *Refused) Failure() (code, message string, permanent bool, data value.Value) {
	return r.Code, r.Message, r.Permanent, r.Data
}

// Sent returns the name of the action that the engine sends to the agent. For a declared action,
// this is the name of the agent's action that the declared action uses.
func (a *Action) Sent() string {
	if a.Uses != "" {
		return a.Uses
	}
	return a.Name
}

// Asked returns the action with which the engine asks the agent about the outcome of an earlier
// call of this action. It returns a.Asks. If a.Asks is nil, it returns this action.
func (a *Action) Asked() *Action {
	if a.Asks != nil {
		return a.Asks
	}
	return a
}

// StatedOutput checks an output that a person states. It returns the output, converted in the same
// way as Output converts a reply.
func (a *Action) StatedOutput(json []byte) (value.Value, error) {
	if a.Stated != nil {
		return a.Stated(json)
	}
	return a.Output(json)
}
