package sdktest_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/saga-engine/engine/sdk"
	"github.com/saga-engine/engine/sdk/schema"
	"github.com/saga-engine/engine/sdk/sdktest"
)

// faults are the ways in which the agent of these tests breaks its promises.
type faults struct {
	ignoresKey      bool // a second call has a second effect
	checksThenActs  bool // two calls at the same time have two effects
	forgetsResult   bool // a second call gives another result
	undoFails       bool // of what was never done
	undoDoesNothing bool
	undoOnce        bool // the second undo fails
	undoOwes        bool // the undo of nothing has an effect
	forgetsUndo     bool // a late call is not refused
	lookupLies      bool // says done of everything
	lookupDenies    bool // says not done of everything
	lookupWorks     bool // does the work
	readWrites      bool // the read-only action has an effect
	oddCode         bool
	actsOnRefusal   bool // a refused call has its effect
	deafToDeadline  bool
	noHeartbeats    bool
	noCheckpoints   bool
}

// shop is the remote service together with the agent in front of it.
type shop struct {
	faults
	mu     sync.Mutex
	orders map[string]string // by key
	gone   map[string]bool   // undone keys
	extra  int               // effects that should not be
	n      int
}

func (s *shop) effects() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return len(s.orders) + s.extra
}

var (
	errEmpty  = errors.New("sold out")
	errUndone = errors.New("undone before")
)

type orderIn struct {
	SKU string `agent:"sku"`
}

type orderOut struct {
	ID string `agent:"id"`
}

func (s *shop) order(_ context.Context, c *sdk.Call, in orderIn) (orderOut, error) {
	if s.checksThenActs {
		s.mu.Lock()
		_, done := s.orders[c.IdempotencyKey]
		s.mu.Unlock()
		<-time.After(10 * time.Millisecond)
		s.mu.Lock()
		defer s.mu.Unlock()
		if !done {
			s.extra++
		}
	} else {
		s.mu.Lock()
		defer s.mu.Unlock()
	}
	switch {
	case in.SKU == "none":
		if s.actsOnRefusal {
			s.extra++
		}
		if s.oddCode {
			return orderOut{}, &sdk.Failure{Code: "weird", Err: errEmpty}
		}
		return orderOut{}, sdk.Code(errEmpty, errEmpty, "sold_out")
	case s.gone[c.IdempotencyKey] && !s.forgetsUndo:
		return orderOut{}, sdk.Code(errUndone, errUndone, "undone")
	}
	id, done := s.orders[c.IdempotencyKey]
	if done && s.ignoresKey {
		s.extra++
	}
	if !done || s.forgetsResult {
		s.n++
		id = fmt.Sprint("order-", s.n)
	}
	s.orders[c.IdempotencyKey] = id
	return orderOut{id}, nil
}

func (s *shop) cancel(_ context.Context, c *sdk.Call, _ sdk.None) (sdk.None, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	_, done := s.orders[c.ForwardKey]
	switch {
	case s.undoFails && !done && !s.gone[c.ForwardKey], s.undoOnce && s.gone[c.ForwardKey]:
		return sdk.None{}, errors.New("no such order")
	case s.undoOwes && !done && !s.gone[c.ForwardKey]:
		s.extra++
	}
	if !s.undoDoesNothing {
		delete(s.orders, c.ForwardKey)
	}
	s.gone[c.ForwardKey] = true
	return sdk.None{}, nil
}

func (s *shop) lookup(ctx context.Context, c *sdk.Call, in orderIn) (orderOut, bool, error) {
	if s.lookupWorks {
		out, err := s.order(ctx, &sdk.Call{IdempotencyKey: "by lookup " + c.IdempotencyKey}, in)
		s.mu.Lock()
		defer s.mu.Unlock()
		id, done := s.orders[c.IdempotencyKey]
		if done {
			out.ID = id
		}
		return out, done, err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	id, done := s.orders[c.IdempotencyKey]
	return orderOut{id}, (done || s.lookupLies) && !s.lookupDenies, nil
}

func (s *shop) price(context.Context, *sdk.Call, orderIn) (sdk.None, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.readWrites {
		s.extra++
	}
	return sdk.None{}, nil
}

func (s *shop) pack(ctx context.Context, c *sdk.Call, _ orderIn) (sdk.None, error) {
	done := ctx.Done()
	if s.deafToDeadline {
		done = nil
	}
	for n := int64(0); ; n++ {
		if !s.noHeartbeats {
			c.Heartbeat(0, "packing")
		}
		if !s.noCheckpoints {
			if err := c.Checkpoint(n, nil); err != nil && !s.deafToDeadline {
				return sdk.None{}, err
			}
		}
		select {
		case <-done:
			return sdk.None{}, ctx.Err()
		case <-time.After(50 * time.Millisecond):
			if n > 200 {
				return sdk.None{}, nil
			}
		}
	}
}

func newShop(f faults) (*shop, *sdk.Agent) {
	s := &shop{faults: f, orders: map[string]string{}, gone: map[string]bool{}}
	a := sdk.New("shop", "1.0.0")
	sdk.Action(a, "order", s.order, sdk.Idempotent(), sdk.CompensatedBy("cancel"), sdk.Lookup(s.lookup), sdk.Errors("sold_out", "undone"))
	sdk.Action(a, "cancel", s.cancel, sdk.Idempotent(), sdk.ByKey())
	sdk.Action(a, "price", s.price, sdk.ReadOnly(), sdk.Idempotent())
	sdk.Action(a, "pack", s.pack, sdk.Progress(), sdk.Checkpoints(), sdk.Cancellable())
	sdk.Action(a, "explode", func(context.Context, *sdk.Call, orderIn) (sdk.None, error) { panic("bang") })
	return s, a
}

func (s *shop) cases() []sdktest.Case {
	return []sdktest.Case{
		{Action: "order", Input: `{"sku":"lamp"}`, Effects: s.effects},
		{Name: "sold out", Action: "order", Input: `{"sku":"none"}`, Effects: s.effects, Code: "sold_out"},
		{Action: "price", Input: `{"sku":"lamp"}`, Effects: s.effects},
		{Action: "pack", Input: `{"sku":"lamp"}`, Slow: true},
		{Action: "explode", Input: `{"sku":"lamp"}`, Panics: true},
	}
}

// S32: the harness itself, on an agent that keeps every rule.
func TestGoodAgent(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s, a := newShop(faults{})
		sdktest.Run(t, a, s.cases()...)
		if s.n == 0 || s.effects() != 0 {
			t.Errorf("%d orders, %d left; want some and none", s.n, s.effects())
		}
	})
}

// Every rule catches an agent that breaks it.
func TestBadAgents(t *testing.T) {
	for name, test := range map[string]struct {
		faults faults
		rule   string
		seen   string
	}{
		"ignores the key":           {faults{ignoresKey: true}, "same key twice", "effects went from"},
		"checks, then acts":         {faults{checksThenActs: true}, "same key at the same time", "effects of 8 calls"},
		"forgets the result":        {faults{forgetsResult: true}, "same key twice", "differs"},
		"undo of nothing fails":     {faults{undoFails: true}, "undo of a call that was never made", "unknown outcome"},
		"undo does nothing":         {faults{undoDoesNothing: true}, "reverts the effect", "after its undo"},
		"undo works once":           {faults{undoOnce: true}, "reverts the effect", "second time"},
		"undo of nothing owes":      {faults{undoOwes: true}, "undo of a call that was never made", "effects went from"},
		"late call is not refused":  {faults{forgetsUndo: true}, "arrives after its own undo", "ended with a result"},
		"lookup lies":               {faults{lookupLies: true}, "the lookup says whether", "never used it says a result"},
		"lookup denies":             {faults{lookupDenies: true}, "the lookup says whether", "it says not done"},
		"lookup works":              {faults{lookupWorks: true}, "the lookup says whether", "effects went from"},
		"read-only writes":          {faults{readWrites: true}, "read-only action", "effects went from"},
		"odd code":                  {faults{oddCode: true}, "declared code", `"weird" is not declared`},
		"acts, then refuses":        {faults{actsOnRefusal: true}, "declared code", "nothing was done, but effects"},
		"deaf to the deadline":      {faults{deafToDeadline: true}, "after complete-by the agent sends nothing", "still runs 1s after"},
		"deaf to cancel":            {faults{deafToDeadline: true}, "cancelled call", "after it was cancelled"},
		"declares heartbeats only":  {faults{noHeartbeats: true}, "heartbeats or checkpoints", "no heartbeat"},
		"declares checkpoints only": {faults{noCheckpoints: true}, "heartbeats or checkpoints", "no checkpoint"},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				s, a := newShop(test.faults)
				rec := &recorder{ctx: t.Context()}
				sdktest.Run(rec, a, s.cases()...)
				rec.want(t, test.rule, test.seen)
				<-time.After(time.Minute) // the bubble's time: deaf actions end
			})
		})
	}
}

// recorder is a T that keeps what is reported.
type recorder struct {
	ctx    context.Context
	errors []string
}

func (r *recorder) Helper()                  {}
func (r *recorder) Context() context.Context { return r.ctx }
func (r *recorder) Errorf(format string, args ...any) {
	r.errors = append(r.errors, fmt.Sprintf(format, args...))
}

// want finds one report that has all the words and a reason.
func (r *recorder) want(t *testing.T, words ...string) {
	t.Helper()
	for _, e := range r.errors {
		found := strings.Contains(e, "why: ")
		for _, w := range words {
			found = found && strings.Contains(e, w)
		}
		if found {
			return
		}
	}
	t.Errorf("no report with %q in:\n%s", words, strings.Join(r.errors, "\n"))
}

// A wrong case is reported too, not passed over.
func TestBadCases(t *testing.T) {
	for name, test := range map[string]struct {
		make  func(*shop) sdktest.Case
		words []string
	}{
		"no such action": {func(*shop) sdktest.Case { return sdktest.Case{Action: "sell"} }, []string{`no action "sell"`}},
		"not slow": {func(*shop) sdktest.Case { return sdktest.Case{Action: "price", Input: `{"sku":"x"}`, Slow: true} },
			[]string{"the agent sends nothing", "really slow"}},
		"wrong code": {func(*shop) sdktest.Case {
			return sdktest.Case{Action: "order", Input: `{"sku":"lamp"}`, Code: "sold_out"}
		},
			[]string{"ends as the case says", "not with the definite failure sold_out"}},
		"unexpected code": {func(*shop) sdktest.Case { return sdktest.Case{Action: "order", Input: `{"sku":"none"}`} },
			[]string{"ends as the case says", "a definite failure, sold_out"}},
		"no panic": {func(*shop) sdktest.Case { return sdktest.Case{Action: "price", Input: `{"sku":"x"}`, Panics: true} },
			[]string{"a panic is", "ended with a result"}},
		"counts nothing": {func(*shop) sdktest.Case {
			return sdktest.Case{Action: "order", Input: `{"sku":"lamp"}`, Effects: func() int { return 0 }}
		}, []string{"reverts the effect", "counts nothing"}},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				s, a := newShop(faults{})
				rec := &recorder{ctx: t.Context()}
				sdktest.Run(rec, a, test.make(s))
				rec.want(t, test.words...)
			})
		})
	}
	t.Run("mistaken agent", func(t *testing.T) {
		rec := &recorder{ctx: t.Context()}
		sdktest.Run(rec, sdk.New("none", "1.0.0"))
		if len(rec.errors) != 1 || !strings.Contains(rec.errors[0], "no actions") {
			t.Errorf("reports = %q", rec.errors)
		}
	})
}

// foreign is a Target that was not written with the SDK, and badly.
type foreign struct {
	schema string
	reply  func(req sdk.Request, onEvent func(sdk.Event)) (sdk.Reply, error)
}

func (f foreign) Schema() (s schema.Schema) {
	if err := json.Unmarshal([]byte(f.schema), &s); err != nil {
		panic(err)
	}
	return s
}

func (f foreign) Invoke(_ context.Context, req sdk.Request, onEvent func(sdk.Event)) (sdk.Reply, error) {
	return f.reply(req, onEvent)
}

const foreignSchema = `{"name":"f","version":"1.0.0","actions":{
	"a":{"outputs":[{"name":"id","type":"string"}],"idempotent":true,"heartbeats":true,"cancellable":true}}}`

func result(output string) func(sdk.Request, func(sdk.Event)) (sdk.Reply, error) {
	return func(sdk.Request, func(sdk.Event)) (sdk.Reply, error) {
		return sdk.Reply{Outcome: sdk.OutcomeResult, Output: json.RawMessage(output)}, nil
	}
}

func TestForeignTargets(t *testing.T) {
	broken := errors.New("connection lost")
	for name, test := range map[string]struct {
		target foreign
		c      sdktest.Case
		words  []string
	}{
		"undo does not exist": {
			foreign{`{"name":"f","version":"1.0.0","actions":{"a":{"compensated_by":"b"}}}`, result(`{}`)},
			sdktest.Case{Action: "a"}, []string{"the schema is the same after", "does not exist"},
		},
		"undo by key wants input": {
			foreign{`{"name":"f","version":"1.0.0","actions":{"a":{"compensated_by":"b"},"b":{"by_key":true,"inputs":[{"name":"x","type":"string"}]}}}`, result(`{}`)},
			sdktest.Case{Action: "a"}, []string{"the schema is the same after", "is not optional"},
		},
		"output of another type": {foreign{foreignSchema, result(`{"id":1}`)}, sdktest.Case{Action: "a"}, []string{"fits the schema", "id: must be a string"}},
		"takes anything":         {foreign{foreignSchema, result(`{"id":"x"}`)}, sdktest.Case{Action: "a"}, []string{"does not know is refused", "sdktest_no_such_input"}},
		"says something late": {foreign{foreignSchema, func(req sdk.Request, onEvent func(sdk.Event)) (sdk.Reply, error) {
			<-time.After(time.Until(req.CompleteBy) + time.Second)
			if onEvent != nil {
				onEvent(sdk.Heartbeat{})
			}
			return sdk.Reply{}, context.DeadlineExceeded
		}}, sdktest.Case{Action: "a", Slow: true}, []string{"after complete-by the agent sends nothing", "1 events"}},
		"breaks": {foreign{foreignSchema, func(sdk.Request, func(sdk.Event)) (sdk.Reply, error) { return sdk.Reply{}, broken }},
			sdktest.Case{Action: "a"}, []string{"fits the schema", "connection lost"}},
		"never answers": {foreign{foreignSchema, func(sdk.Request, func(sdk.Event)) (sdk.Reply, error) {
			return sdk.Reply{}, context.DeadlineExceeded
		}}, sdktest.Case{Action: "a"}, []string{"same key twice", "no reply within"}},
		"dies of a panic": {foreign{foreignSchema, func(sdk.Request, func(sdk.Event)) (sdk.Reply, error) {
			return sdk.Reply{Outcome: sdk.OutcomeUnknown, Code: sdk.CodeAgentLost}, nil
		}}, sdktest.Case{Action: "a", Panics: true}, []string{"a panic is", "agent_lost"}},
		"claims a code of the engine": {foreign{foreignSchema, func(sdk.Request, func(sdk.Event)) (sdk.Reply, error) {
			return sdk.Reply{Outcome: sdk.OutcomeFailed, Code: sdk.CodeTimeout}, nil
		}}, sdktest.Case{Action: "a"}, []string{"declared code", `"timeout" is not declared`}},
		"refuses all but one at once": {foreign{foreignSchema, func(sdk.Request, func(sdk.Event)) (sdk.Reply, error) {
			return sdk.Reply{Outcome: sdk.OutcomeFailed, Code: sdk.CodeUnavailable}, nil
		}}, sdktest.Case{Action: "a"}, []string{"same key at the same time", "unavailable"}},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				rec := &recorder{ctx: t.Context()}
				sdktest.RunTarget(rec, test.target, test.c)
				rec.want(t, test.words...)
			})
		})
	}
}

// An action that declares sdk.AnyErrors may answer with any code that is one.
func TestAnyErrors(t *testing.T) {
	for code, want := range map[string]int{"teapot": 0, "Tea Pot": 1} {
		target := foreign{`{"name":"f","version":"1.0.0","actions":{"a":{"errors":[{"code":"*"}]}}}`,
			func(req sdk.Request, _ func(sdk.Event)) (sdk.Reply, error) {
				if string(req.Input) == `{}` {
					return sdk.Reply{Outcome: sdk.OutcomeFailed, Code: code}, nil
				}
				return sdk.Reply{Outcome: sdk.OutcomeFailed, Code: sdk.CodeInvalid}, nil
			}}
		if problems := sdktest.Check(t.Context(), target, sdktest.Case{Action: "a", Code: code}); len(problems) != want {
			t.Errorf("problems with code %q = %v, want %d", code, problems, want)
		}
	}
}

// Production code of this package does not depend on the testing package, so a
// command can use it.
func TestNoTestingImport(t *testing.T) {
	for _, file := range []string{"doc.go", "sdktest.go", "rules.go"} {
		source, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		if strings.Contains(string(source), "\t\"testing\"\n") {
			t.Errorf("%s imports testing", file)
		}
	}
}
