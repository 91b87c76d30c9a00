package noun

import (
	"regexp"
	"time"

	"github.com/saga-engine/engine/dsl/cron"
	"github.com/saga-engine/engine/dsl/internal/eval"
	"github.com/saga-engine/engine/dsl/internal/value"
	"github.com/saga-engine/engine/dsl/selection"
)

// A Schedule is a schedule block of a workflow. It starts runs at the times of its timetable.
type Schedule struct {
	cron.Schedule
	// Variables are the values that the schedule gives to variables of the workflow.
	Variables []Assignment
	// Select says which rows start runs at a tick; nil = each tick starts one run. With a Select,
	// Variables is nil, and Select.Assign returns the values for each row.
	Select *Selection
}

// A Selection is the select block of a schedule or of an on_event block. Its functions are pure and
// safe for concurrent use.
type Selection struct {
	selection.Selection
	// Assign returns the values that a row gives to variables of the workflow. The row is a JSON
	// object with a value for each column.
	Assign func(row []byte) ([]Assignment, error)
	// Keep reports whether a row starts a run; nil = each row does.
	Keep func(row []byte) (bool, error)
}

// An OnEvent is an on_event block of a workflow. If its condition is true for an event of one type,
// the event starts one run of the workflow, or one run for each key of ForEach, or one run for each
// row of Select. If the field Key is set, this is a reset_on block. An event of a reset_on block
// frees the key of a goal that was reached, and starts no run.
type OnEvent struct {
	Name string // label of the block
	Type string // type of the events
	// When is the condition. It uses the field Event of the Scope. nil = the condition is true for
	// each event of the type.
	When func(*eval.Scope) (bool, error)
	// Variables returns the values that the block gives to variables of the workflow. It uses the
	// field Event of the Scope. nil = the block gives no values.
	Variables func(*eval.Scope) ([]Assignment, error)
	// ForEach returns the keys of an event, with their values. The event starts one run for each
	// key. ForEach uses the field Event of the Scope. nil = the block has no for_each. With a
	// ForEach, Variables also uses the field Each of the Scope.
	ForEach func(*eval.Scope) (Each, error)
	// Select says which rows start runs; nil = the block has no select block. With a Select,
	// Variables is nil, and Select.Assign returns the values for each row.
	Select *Selection
	// Args returns the values of the parameters of Select as text; the text nil means NULL. It
	// uses the field Event of the Scope. nil = the parameters have no values.
	Args func(*eval.Scope) (map[string]*string, error)
	// Key returns the unique key whose goal the event resets. It uses the field Event of the Scope.
	// nil = the block starts runs.
	Key func(*eval.Scope) (string, error)
}

// Resets returns the unique key whose goal an event resets. The parameters are the same as in
// Given. The result is "" if the condition of the block is false.
func (e *OnEvent) Resets(id string, at time.Time, data value.Value) (string, error) {
	s := e.scope(id, at, data)
	if wanted, err := e.wants(s); err != nil || !wanted {
		return "", err
	}
	return e.Key(s)
}

// wants reports whether the condition of the block is true.
func (e *OnEvent) wants(s *eval.Scope) (bool, error) {
	if e.When == nil {
		return true, nil
	}
	return e.When(s)
}

// List returns the keys of an event, sorted by their bytes, with a value for each key. The event
// starts one run for each key. The block must have a ForEach. The parameters and the result
// `starts` are the same as in Given.
func (e *OnEvent) List(id string, at time.Time, data value.Value) (list Each, starts bool, err error) {
	s := e.scope(id, at, data)
	if starts, err = e.wants(s); err != nil || !starts {
		return Each{}, false, err
	}
	list, err = e.ForEach(s)
	return list, err == nil, err
}

// GivenEach returns a function for an event that starts a run for each key. For one key, this
// function returns the values that the block gives to the variables of the run. The block must
// have a ForEach. The parameters are the same as in Given. Only one goroutine at a time may
// call the function.
func (e *OnEvent) GivenEach(id string, at time.Time, data value.Value) func(key string, v value.Value) ([]Assignment, error) {
	s := e.scope(id, at, data)
	return func(key string, v value.Value) ([]Assignment, error) {
		if e.Variables == nil {
			return nil, nil
		}
		s.Each = &eval.EachItem{Key: key, Value: v}
		return e.Variables(s)
	}
}

// Fires returns the values that an event gives to the parameters of the selection, by name.
// The block must have a Select. The result `starts` is false if the condition of the block is
// false. For `id`, `at` and `data`, see Given.
func (e *OnEvent) Fires(id string, at time.Time, data value.Value) (args map[string]*string, starts bool, err error) {
	s := e.scope(id, at, data)
	if starts, err = e.wants(s); err != nil || !starts {
		return nil, false, err
	}
	if e.Args != nil {
		args, err = e.Args(s)
	}
	return args, err == nil, err
}

func (e *OnEvent) scope(id string, at time.Time, data value.Value) *eval.Scope {
	return &eval.Scope{Event: &eval.Event{ID: id, Type: e.Type, At: at, Data: data}}
}

// Given returns the values that the block gives to the variables of the run that an event starts.
// The parameters are the id of the event, the time at which it was sent, and its data. The result
// `starts` is false if the event starts no run, because the condition of the block is false. Given
// returns an error if the data of the event do not fit the expressions of the block.
func (e *OnEvent) Given(id string, at time.Time, data value.Value) (vars []Assignment, starts bool, err error) {
	s := e.scope(id, at, data)
	if starts, err = e.wants(s); err != nil || !starts {
		return nil, false, err
	}
	if e.Variables != nil {
		vars, err = e.Variables(s)
	}
	return vars, err == nil, err
}

// eventType matches every text that can be the type of an event.
var eventType = regexp.MustCompile(`^[A-Za-z0-9][A-Za-z0-9._:/-]{0,199}$`)

// ValidEventType reports whether a text can be the type of an event: it begins with a letter or a
// digit, and has at most 200 letters, digits and . _ : / -.
func ValidEventType(text string) bool { return eventType.MatchString(text) }
