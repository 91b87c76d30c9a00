package sdk

import (
	"context"
	"fmt"
	"reflect"

	"github.com/saga-engine/engine/sdk/internal/names"
	"github.com/saga-engine/engine/sdk/internal/typed"
	"github.com/saga-engine/engine/sdk/schema"
)

// action holds an action that the author has added to an agent, with its schema and functions.
type action struct {
	schema  schema.Action
	in, out *typed.Plan
	run     handler
	lookup  *lookup
	errs    []error
}

// A handler calls the author's function with the input struct. It returns the output struct
// and the error of the function.
type handler func(ctx context.Context, c *Call, in reflect.Value) (reflect.Value, error)

// lookup holds the author's function that finds out the outcome of an earlier call.
type lookup struct {
	in, out reflect.Type
	run     func(ctx context.Context, c *Call, in reflect.Value) (out reflect.Value, done bool, err error)
}

// plan makes the plan of an input or output struct. If the struct has mistakes, plan adds
// them to act.errs and returns nil.
func (act *action) plan(t reflect.Type, u typed.Usage) *typed.Plan {
	p, err := typed.New(t, u)
	if err != nil {
		act.errs = append(act.errs, err)
		return nil
	}
	return p
}

func (act *action) declare(retryable bool, codes []string) {
	for _, code := range codes {
		switch {
		case !ValidCode(code):
			act.errs = append(act.errs, fmt.Errorf("error code %q: want snake_case", code))
		case names.Reserved(code):
			act.errs = append(act.errs, fmt.Errorf("error code %q is the engine's own", code))
		case act.lists(code):
			act.errs = append(act.errs, fmt.Errorf("error code %q declared twice", code))
		default:
			act.schema.Errors = append(act.schema.Errors, schema.ErrorCode{Code: code, Retryable: retryable})
		}
	}
}

// declares reports whether the schema of the action lists this error code. If the schema
// lists schema.AnyCode, the result is true for every code.
func (act *action) declares(code string) bool {
	return act.lists(code) || act.lists(schema.AnyCode)
}

func (act *action) lists(code string) bool {
	for _, e := range act.schema.Errors {
		if e.Code == code {
			return true
		}
	}
	return false
}
