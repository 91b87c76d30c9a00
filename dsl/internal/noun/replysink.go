package noun

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/saga-engine/engine/dsl/diag"
	"github.com/saga-engine/engine/dsl/internal/eval"
	"github.com/saga-engine/engine/dsl/internal/value"
)

// A ReplySink is an action of an agent that takes replies of runs.
type ReplySink struct {
	Agent  *Agent
	Action string // name of the plugin's action that the engine calls
	// Input returns the input of the call. The map `told` holds the fields of a reply by name: seq
	// is an int, and all others are strings. The parameter `s` has the run and its variables, and
	// s.Self.Key is the idempotency key of the call.
	Input func(s *eval.Scope, told map[string]any) (value.Value, error)
	// Output checks a reply of the agent, as Action.Output does.
	Output func(json []byte) (value.Value, error)
}

// ReplySinks says which actions of a definition's agents take replies of runs. In both maps, the
// first key is the name of the agent, and the second key is the name of the action.
type ReplySinks struct {
	Take    map[string]map[string]*ReplySink
	Refused map[string]map[string]string // why an action takes no replies
}

// Find returns the action with the name AGENT.ACTION. It returns an error if there is no such
// action, or if the action takes no replies.
func (s *ReplySinks) Find(name string) (*ReplySink, error) {
	dot := strings.LastIndexByte(name, '.')
	agent, action := name[:max(0, dot)], name[dot+1:]
	if s == nil {
		return nil, fmt.Errorf("agent %q is unknown: the workflow starts only as a part of another run", agent)
	}
	take, refused := s.Take[agent], s.Refused[agent]
	if take == nil && refused == nil {
		return nil, fmt.Errorf("the definition has no agent %q.%s", agent, diag.DidYouMean(agent, slices.Sorted(maps.Keys(s.Take))))
	}
	if sink := take[action]; sink != nil {
		return sink, nil
	}
	if why, known := refused[action]; known {
		return nil, fmt.Errorf("action %q of agent %q takes no replies: %s", action, agent, why)
	}
	return nil, fmt.Errorf("agent %q has no action %q.%s", agent, action, diag.DidYouMean(action, slices.Sorted(maps.Keys(take))))
}

// Names returns the names AGENT.ACTION of the actions that take replies, sorted by agent and
// action.
func (s *ReplySinks) Names() []string {
	out := []string{}
	if s == nil {
		return out
	}
	for _, agent := range slices.Sorted(maps.Keys(s.Take)) {
		for _, action := range slices.Sorted(maps.Keys(s.Take[agent])) {
			out = append(out, agent+"."+action)
		}
	}
	return out
}
