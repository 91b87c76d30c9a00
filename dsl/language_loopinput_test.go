package dsl_test

import (
	"testing"
	"time"

	"github.com/saga-engine/engine/dsl"
)

// ownLoop is a loop over a declared action. Its arguments use self.previous and self.collected, and
// every other expression of the step uses self.input. self.input are the arguments, so the evaluator must
// not evaluate the arguments with self.input again.
const ownLoop = `step "s" {
  action = agent.trip.book
  when   = length(self.collected) < 9
  input {
    hotel  = try(self.previous.id, "first")
    nights = length(self.collected)
  }
  precondition {
    condition     = self.previous == null
    error_message = "after ${self.previous.id}"
  }
  fail_when {
    condition     = self.input.nights == 7
    error_message = "hotel ${self.input.hotel}"
    error_code    = "nights_${self.input.nights}"
  }
  postcondition {
    condition     = self.input.hotel == try(self.previous.id, "first")
    error_message = "hotel ${self.input.hotel} after ${try(self.previous.id, "none")}"
  }
  repeat {
    until          = self.input.nights >= 2 && self.output.id != ""
    interval       = "${self.input.nights + 1}m"
    max_iterations = 9
    collect        = [self.input.nights, self.output.id, length(self.collected)]
  }
  compensate {
    action     = agent.trip.post
    idempotent = true
    input {
      url  = self.input.hotel
      json = [self.input.nights, length(self.collected)]
    }
  }
}`

func TestDeclaredActionInALoop(t *testing.T) {
	wf := declared(t, ownLoop)
	s := stepOf(t, wf, "s")
	scope := func(given string) *dsl.Scope {
		sc := &dsl.Scope{Vars: bound(t, wf), Self: &dsl.Self{
			Key: "k", Input: document(`{"url":"sent"}`), Output: document(`{"id":"b"}`), OutputKnown: true,
			Previous: document(`{"id":"a"}`), Collected: func() dsl.Value { return document(`[1,2]`) },
		}}
		if given != "" {
			sc.Self.Given = document(given)
		}
		return sc
	}
	v, err := s.Input(scope(""))
	wantValue(t, v, err, `{"errors":{"409":"sold_out"},"json":{"guest":null,"hotel":"a","nights":2,"note":null,"ref":"k"},"url":"http://site/book"}`)
	if s.Given == nil {
		t.Fatal("the run does not store the arguments, and the undo needs them")
	}
	v, err = s.Given(scope(""))
	wantValue(t, v, err, `{"hotel":"a","nights":2}`)
	if yes, err := s.When(scope("")); !yes || err != nil {
		t.Errorf("when is %t (%v)", yes, err)
	}
	if text, err := s.Pre[0].Message(scope("")); text != "after a" || err != nil {
		t.Errorf("the message of the precondition is %q (%v)", text, err)
	}
	for _, c := range []struct {
		given, hotel, code string // the arguments that the run has stored; "" = none
		fails, holds, over bool
		pause              time.Duration
		collected, undo    string
	}{
		{"", "a", "nights_2", false, true, true, 3 * time.Minute, `[2,"b",2]`, `{"json":[2,2],"url":"a"}`},
		{`{"hotel":"x","nights":7}`, "x", "nights_7", true, false, true, 8 * time.Minute, `[7,"b",2]`, `{"json":[7,2],"url":"x"}`},
		{`{"hotel":"a","nights":1}`, "a", "nights_1", false, true, false, 2 * time.Minute, `[1,"b",2]`, `{"json":[1,2],"url":"a"}`},
	} {
		sc := scope(c.given)
		if hit, err := s.FailWhen[0].Check(sc); hit != c.fails || err != nil {
			t.Errorf("%s: fail_when is %t (%v)", c.given, hit, err)
		}
		if text, err := s.FailWhen[0].Message(sc); text != "hotel "+c.hotel || err != nil {
			t.Errorf("%s: the message of fail_when is %q (%v)", c.given, text, err)
		}
		if code, err := s.FailWhen[0].Code(sc); code != c.code || err != nil {
			t.Errorf("%s: the code of fail_when is %q (%v)", c.given, code, err)
		}
		if ok, err := s.Post[0].Check(sc); ok != c.holds || err != nil {
			t.Errorf("%s: the postcondition is %t (%v)", c.given, ok, err)
		}
		if text, err := s.Post[0].Message(sc); text != "hotel "+c.hotel+" after a" || err != nil {
			t.Errorf("%s: the message of the postcondition is %q (%v)", c.given, text, err)
		}
		if over, err := s.Repeat.Until(sc); over != c.over || err != nil {
			t.Errorf("%s: until is %t (%v)", c.given, over, err)
		}
		if pause, err := s.Repeat.Interval(sc); pause != c.pause || err != nil {
			t.Errorf("%s: the interval is %v (%v)", c.given, pause, err)
		}
		v, err := s.Repeat.Collect(sc)
		wantValue(t, v, err, c.collected)
		sc.Failure = &dsl.Failure{}
		v, err = s.Undo.Input(sc)
		wantValue(t, v, err, c.undo)
	}
}

// A run stores the arguments only if it must: the values on which they depend change after the call,
// and an expression reads self.input.
func TestWhichArgumentsAreStored(t *testing.T) {
	const until = "repeat {\nmax_iterations = 2\nuntil = self.input.hotel == \"x\"\n}\n"
	for _, c := range []struct {
		name, body string
		stored     bool
	}{
		{"self.previous and self.input", "action = agent.trip.book\ninput { hotel = try(self.previous.id, \"a\") }\n" + until, true},
		{"no self in the arguments", "action = agent.trip.book\ninput { hotel = var.site }\n" + until, false},
		{"no self.input", "action = agent.trip.book\ninput { hotel = try(self.previous.id, \"a\") }\nrepeat { max_iterations = 2 }\n", false},
		{"an action of the plugin", "action = agent.trip.post\ninput { url = try(self.previous.cookie, \"a\") }\nrepeat {\nmax_iterations = 2\nuntil = self.input.url == \"x\"\n}\n", false},
	} {
		wf := declared(t, "step \"s\" {\ncompensation = \"none\"\n"+c.body+"}")
		if got := wf.Steps[0].Given != nil; got != c.stored {
			t.Errorf("%s: the arguments are stored: %t", c.name, got)
		}
	}
}

// self.signal is the name of the signal that ended this iteration of a wait, or null.
func TestSignalInALoop(t *testing.T) {
	wf := linkedWorkflow(t, `step "w" {
  deadline = "1h"
  wait {
    signal     = ["vote", "end"]
    on_timeout = "continue"
  }
  repeat {
    until          = self.signal == "end"
    max_iterations = 9
    collect        = { signal = self.signal, upper = upper(coalesce(self.signal, "none")) }
  }
  postcondition {
    condition     = self.timed_out == (self.signal == null)
    error_message = "ended by ${coalesce(self.signal, "nothing")}"
  }
}`)
	s := stepOf(t, wf, "w")
	for _, c := range []struct {
		self             dsl.Self
		over             bool
		collected, error string
	}{
		{dsl.Self{Signal: "vote"}, false, `{"signal":"vote","upper":"VOTE"}`, "ended by vote"},
		{dsl.Self{Signal: "end"}, true, `{"signal":"end","upper":"END"}`, "ended by end"},
		{dsl.Self{TimedOut: true}, false, `{"signal":null,"upper":"NONE"}`, "ended by nothing"},
	} {
		sc := scopeOf(document(`{}`))
		sc.Self = &c.self
		if over, err := s.Repeat.Until(sc); over != c.over || err != nil {
			t.Errorf("%+v: until is %t (%v)", c.self, over, err)
		}
		v, err := s.Repeat.Collect(sc)
		wantValue(t, v, err, c.collected)
		if ok, err := s.Post[0].Check(sc); !ok || err != nil {
			t.Errorf("%+v: the postcondition is %t (%v)", c.self, ok, err)
		}
		if text, err := s.Post[0].Message(sc); text != c.error || err != nil {
			t.Errorf("%+v: the message is %q (%v)", c.self, text, err)
		}
	}
}
