package sdk

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"reflect"

	"github.com/saga-engine/engine/sdk/internal/fastjson"
	"github.com/saga-engine/engine/sdk/internal/typed"
)

// Configure declares the agent's configuration. T is a struct with the same tags as an input.
// The values come from config {} in the agent block of the workflow files. The parameter `fn`
// is called once for each process, before the first call of any action. If fn returns an error,
// the engine does not use the process, and the operator sees the error. So the error should say
// what to correct.
func Configure[T any](a *Agent, fn func(ctx context.Context, cfg T) error) {
	if a.config != nil {
		a.errs = append(a.errs, errors.New("configuration: declared twice"))
		return
	}
	p, err := typed.New(reflect.TypeFor[T](), typed.Input)
	if err != nil {
		a.errs = append(a.errs, fmt.Errorf("configuration: %w", err))
		return
	}
	if fn == nil {
		a.errs = append(a.errs, errors.New("configuration: the function is nil"))
		return
	}
	a.config = &config{plan: p, apply: func(ctx context.Context, v reflect.Value) error {
		return fn(ctx, v.Interface().(T))
	}}
}

// ErrConfigured is the error of Agent.Configure when the agent already has a configuration.
var ErrConfigured = errors.New("sdk: the agent is already configured")

// Configure gives the agent its configuration, a JSON object; nil means {}. Only the first
// call counts: later calls return ErrConfigured. If an action is called before Configure,
// the agent is configured with {}.
func (a *Agent) Configure(ctx context.Context, raw json.RawMessage) error {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.configured {
		return ErrConfigured
	}
	return a.configureLocked(ctx, raw)
}

// ready configures the agent with {} if the agent is not configured yet. It returns the error
// of the configuration; nil if the agent can be called.
func (a *Agent) ready(ctx context.Context) error {
	a.mu.Lock()
	defer a.mu.Unlock()
	if !a.configured {
		return a.configureLocked(ctx, nil)
	}
	return a.configErr
}

func (a *Agent) configureLocked(ctx context.Context, raw json.RawMessage) error {
	a.configured, a.configRaw = true, raw
	a.configErr = a.applyConfig(ctx, raw)
	if a.configErr != nil {
		a.configErr = fmt.Errorf("configure agent %s: %w", a.name, a.configErr)
	}
	return a.configErr
}

// configText returns the agent's configuration as JSON; nil if the host gave none.
func (a *Agent) configText() json.RawMessage {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.configRaw
}

func (a *Agent) applyConfig(ctx context.Context, raw json.RawMessage) (err error) {
	if len(raw) == 0 {
		raw = json.RawMessage("{}")
	}
	c := a.config
	if c == nil {
		p, err := typed.New(reflect.TypeFor[None](), typed.Input)
		if err != nil {
			return err
		}
		c = &config{plan: p, apply: func(context.Context, reflect.Value) error { return nil }}
	}
	v, err := fastjson.Decode(c.plan, raw)
	if err != nil {
		return err
	}
	defer func() {
		if p := recover(); p != nil {
			err = fmt.Errorf("panic: %v", p)
		}
	}()
	return c.apply(ctx, v)
}
