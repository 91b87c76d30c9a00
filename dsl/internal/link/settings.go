package link

import (
	"errors"
	"fmt"
	"math"
	"strconv"
	"strings"
	"time"

	"github.com/zclconf/go-cty/cty"

	"github.com/saga-engine/engine/dsl/diag"
	"github.com/saga-engine/engine/dsl/internal/decl"
	"github.com/saga-engine/engine/dsl/internal/eval"
	"github.com/saga-engine/engine/dsl/internal/fasteval"
	"github.com/saga-engine/engine/dsl/internal/noun"
	"github.com/saga-engine/engine/dsl/internal/report"
	"github.com/saga-engine/engine/dsl/internal/sorted"
	"github.com/saga-engine/engine/dsl/internal/syntax"
	"github.com/saga-engine/engine/dsl/internal/value"
)

// The default settings, and the highest values of max_attempts and max_iterations.
const (
	defaultTimeout    = 30 * time.Second
	defaultAttempts   = 3 // attempts in a round for idempotent or read-only actions, or without a call; otherwise 1 attempt
	defaultCoolDown   = 15 * time.Minute
	defaultCoolDowns  = 3
	notifyDeadline    = 24 * time.Hour // how long the engine repeats the call of a notification
	maxAttemptsNumber = 1_000_000
	// maxIterationsNumber is the largest max_iterations that a repeat block may have.
	maxIterationsNumber = 1_000_000
)

// forwardDefaults returns the default settings of a step. The parameter `repeatable` is true if the
// action of the step is idempotent or read-only, or if the step has no call.
func forwardDefaults(repeatable bool) noun.Settings {
	attempts := 1
	if repeatable {
		attempts = defaultAttempts
	}
	return noun.Settings{
		Timeout: defaultTimeout, Priority: noun.PriorityOfRun,
		Retry: noun.Retry{
			MaxAttempts: attempts, Strategy: noun.Exponential, InitialInterval: time.Second, Multiplier: 2,
			MaxInterval: 30 * time.Second, Jitter: true, CoolDown: defaultCoolDown, CoolDowns: defaultCoolDowns,
		},
	}
}

// undoDefaults returns the default settings of an undo. With these settings, the number of
// attempts has no limit.
func undoDefaults() noun.Settings {
	return noun.Settings{
		Timeout: defaultTimeout, Priority: noun.PriorityOfRun,
		Retry: noun.Retry{
			MaxAttempts: noun.Unbounded, Strategy: noun.Exponential, InitialInterval: time.Second, Multiplier: 2,
			MaxInterval: 5 * time.Minute, Jitter: true,
		},
	}
}

// defaultsOf returns the default settings of a step. The step of a notification has an unlimited
// number of attempts within 24 hours (notifyDeadline).
func defaultsOf(l *workflowLinker, repeatable bool) noun.Settings {
	if l.out.Notifies == "" {
		return forwardDefaults(repeatable)
	}
	out := undoDefaults()
	out.Deadline = noun.Limit{After: notifyDeadline}
	return out
}

// A setter converts the value of one attribute, and stores it in the field of noun.Settings for
// this attribute. It returns an error if the value is invalid.
type setter func(*noun.Settings, cty.Value) error

var setters = map[string]setter{
	"timeout": func(s *noun.Settings, v cty.Value) (err error) {
		s.Timeout, err = value.SpanOf(v)
		return err
	},
	"deadline": func(s *noun.Settings, v cty.Value) (err error) {
		s.Deadline, err = limitOf(v)
		return err
	},
	"heartbeat_timeout": func(s *noun.Settings, v cty.Value) (err error) {
		s.HeartbeatTimeout, err = value.SpanOf(v)
		return err
	},
	"max_parallel": func(s *noun.Settings, v cty.Value) (err error) {
		s.MaxParallel, err = value.WholeNumber(v, 1, math.MaxInt32)
		return err
	},
	"max_failures": setMaxFailures,
	"priority": func(s *noun.Settings, v cty.Value) (err error) {
		s.Priority, err = priorityOf(v)
		return err
	},
	"max_iterations": func(s *noun.Settings, v cty.Value) (err error) {
		s.MaxIterations, err = value.WholeNumber(v, 1, maxIterationsNumber)
		return err
	},
}

var retrySetters = map[string]setter{
	"max_attempts": func(s *noun.Settings, v cty.Value) (err error) {
		if text, terr := value.StringOf(v); terr == nil && text == "unbounded" {
			s.Retry.MaxAttempts = noun.Unbounded
			return nil
		}
		if s.Retry.MaxAttempts, err = value.WholeNumber(v, 1, maxAttemptsNumber); err != nil {
			return errors.New(`a whole number of at least 1 is required (it counts the first try), or "unbounded"`)
		}
		return nil
	},
	"strategy": func(s *noun.Settings, v cty.Value) error {
		return choose(v, map[string]func(){
			"exponential": func() { s.Retry.Strategy = noun.Exponential },
			"linear":      func() { s.Retry.Strategy = noun.Linear },
			"constant":    func() { s.Retry.Strategy = noun.Constant },
		})
	},
	"initial_interval": func(s *noun.Settings, v cty.Value) (err error) {
		s.Retry.InitialInterval, err = value.SpanOf(v)
		return err
	},
	"max_interval": func(s *noun.Settings, v cty.Value) (err error) {
		s.Retry.MaxInterval, err = value.SpanOf(v)
		return err
	},
	"multiplier": func(s *noun.Settings, v cty.Value) error {
		n, err := value.NumberOf(v)
		if err != nil {
			return err
		}
		f, _ := n.Float64()
		if f < 1 || f > 1000 {
			return errors.New("a number from 1 to 1000 is required")
		}
		s.Retry.Multiplier = f
		return nil
	},
	"jitter": func(s *noun.Settings, v cty.Value) error {
		return choose(v, map[string]func(){
			"full": func() { s.Retry.Jitter = true },
			"none": func() { s.Retry.Jitter = false },
		})
	},
	"on": func(s *noun.Settings, v cty.Value) (err error) {
		s.Retry.On, err = value.StringsOf(v)
		return err
	},
	"not_on": func(s *noun.Settings, v cty.Value) (err error) {
		s.Retry.NotOn, err = value.StringsOf(v)
		return err
	},
	"on_exhausted": func(s *noun.Settings, v cty.Value) error {
		return choose(v, map[string]func(){
			"compensate": func() { s.Retry.OnExhausted = noun.ExhaustedCompensate },
			"park":       func() { s.Retry.OnExhausted = noun.ExhaustedPark },
			"cool_down":  func() { s.Retry.OnExhausted = noun.ExhaustedCoolDown },
		})
	},
	"cool_down": func(s *noun.Settings, v cty.Value) (err error) {
		s.Retry.CoolDown, err = value.SpanOf(v)
		return err
	},
	"cool_downs": func(s *noun.Settings, v cty.Value) (err error) {
		s.Retry.CoolDowns, err = value.WholeNumber(v, 0, maxAttemptsNumber)
		return err
	},
}

// choose calls the function `words[v]`. It returns an error if v is not a key of the map
// `words`.
func choose(v cty.Value, words map[string]func()) error {
	text, err := value.StringOf(v)
	if err != nil {
		return err
	}
	set, ok := words[text]
	if !ok {
		hint := diag.DidYouMean(text, sorted.Keys(words))
		return fmt.Errorf("it must be one of %s%s", quotedList(sorted.Keys(words)), strings.Replace(hint, " Did", "; did", 1))
	}
	set()
	return nil
}

// setMaxFailures sets s.MaxFailures from a count of instances, or from a share of the instances
// such as "20%". A share is rounded down to a whole number of instances.
func setMaxFailures(s *noun.Settings, v cty.Value) error {
	text, err := value.StringOf(v)
	if err != nil {
		return err
	}
	if share, ok := strings.CutSuffix(text, "%"); ok {
		p, err := strconv.Atoi(strings.TrimSpace(share))
		if err != nil || p < 0 || p > 100 {
			return errors.New(`a share goes from "0%" to "100%"`)
		}
		s.MaxFailures = func(n int) int { return n * p / 100 }
		return nil
	}
	count, err := value.WholeNumber(v, 0, math.MaxInt32)
	if err != nil {
		return errors.New(`a whole number of at least 0 or a share such as "20%" is required`)
	}
	s.MaxFailures = func(int) int { return count }
	return nil
}

// A setting is an attribute in the source that changes noun.Settings. It is in a step, or in a
// retry, repeat or compensate block.
type setting struct {
	name string         // name of the attribute
	e    *eval.Expr     // value of the attribute
	set  setter         // stores the value in noun.Settings
	d    *fasteval.Expr // e compiled for the fast evaluator; nil = use the general evaluator
}

// settingsOf returns a function that computes the settings of a step or of an undo in a run.
// The parameter `base` holds the defaults, and `list` holds the attributes in the source. If the
// settings are known before a run, the second result holds them. If they depend on the run or
// have errors, the second result is nil.
func settingsOf(l *workflowLinker, base noun.Settings, list []setting) (func(*eval.Scope) (*noun.Settings, error), *noun.Settings) {
	constant, broken := true, false
	written := map[string]bool{}
	for i, x := range list {
		written[x.name] = true
		list[i].d = l.fast(x.e, fasteval.Anything)
		v := l.check(x.e)
		if x.e.Bad {
			broken = true
			continue
		}
		if raw, _ := v.UnmarkDeep(); raw.IsWhollyKnown() {
			scratch := base
			if err := x.set(&scratch, v); err != nil {
				l.Invalid(x.e.Range, x.name, err)
				broken = true
			}
		}
		if x.e.Compiled.Constant == nil {
			constant = false
		}
	}
	ev, self := l.ev, max(l.cur, 0)
	build := func(s *eval.Scope) (*noun.Settings, error) {
		out := base
		for i := range list {
			x, err := &list[i], error(nil)
			v, ok := x.d.Scalar(&fasteval.Context{Evaluator: ev, Scope: s, Self: self})
			if !ok {
				v, err = ev.Run(x.e.Compiled, s, self)
			}
			if err == nil {
				err = x.set(&out, v)
			}
			if err != nil {
				return nil, fmt.Errorf("%s: %s: %w", report.Range(x.e.Range), x.name, err)
			}
		}
		return &out, orderIntervals(&out.Retry, written)
	}
	if !constant || broken {
		return build, nil
	}
	static, err := build(nil)
	if err != nil {
		for _, x := range list {
			if x.name == "initial_interval" {
				l.Errorf(x.e.Range, "Invalid value for initial_interval", "%s.", err)
			}
		}
		return build, nil
	}
	return func(*eval.Scope) (*noun.Settings, error) { return static, nil }, static
}

// orderIntervals makes sure that initial_interval is not longer than max_interval. If it is longer,
// orderIntervals changes the attribute that is not in the source: it raises max_interval, or lowers
// initial_interval. If both attributes are in the source, it returns an error. The map `written`
// has the names of the attributes that are in the source.
func orderIntervals(r *noun.Retry, written map[string]bool) error {
	if r.InitialInterval <= r.MaxInterval {
		return nil
	}
	switch {
	case !written["max_interval"]:
		r.MaxInterval = r.InitialInterval
	case !written["initial_interval"]:
		r.InitialInterval = r.MaxInterval
	default:
		return errors.New("initial_interval is longer than max_interval")
	}
	return nil
}

// stepSettings returns the attributes in the source that set the settings of a step. If the retry
// block of the step does not have an attribute, stepSettings takes the attribute from the retry
// block of the workflow. There is one exception: if the parameter `repeatable` is false,
// stepSettings does not take max_attempts from the workflow. The parameter `repeatable` is true if
// the action is idempotent or read-only, or if the step has no call.
func stepSettings(w *decl.Workflow, s *decl.Step, repeatable bool) []setting {
	var list []setting
	for _, name := range sorted.Keys(setters) {
		e := s.Attr(name)
		if name == "max_iterations" {
			e = s.Repeat.Attr(name)
		}
		if e != nil {
			list = append(list, setting{name: name, e: e, set: setters[name]})
		}
	}
	own := decl.AttrsOf(s.Block.One("retry"))
	for _, name := range sorted.Keys(retrySetters) {
		e := own[name]
		if e == nil && (name != "max_attempts" || repeatable) {
			e = decl.AttrsOf(w.Retry)[name]
		}
		if e != nil {
			list = append(list, setting{name: name, e: e, set: retrySetters[name]})
		}
	}
	return list
}

func undoSettings(b *syntax.Block) []setting {
	var list []setting
	for _, name := range []string{"timeout", "deadline"} {
		if e := b.Attr(name); e != nil {
			list = append(list, setting{name: name, e: e, set: setters[name]})
		}
	}
	retry := decl.AttrsOf(b.One("retry"))
	for _, name := range sorted.Keys(retry) {
		list = append(list, setting{name: name, e: retry[name], set: retrySetters[name]})
	}
	return list
}

// longestPause returns the longest possible pause after an attempt. The parameter `attempt` is the
// number of the attempt; the first attempt has the number 1.
func longestPause(r *noun.Retry, attempt int) time.Duration {
	d := float64(r.InitialInterval)
	switch r.Strategy {
	case noun.Exponential:
		d *= math.Pow(r.Multiplier, float64(attempt-1))
	case noun.Linear:
		d *= float64(attempt)
	}
	if d > float64(r.MaxInterval) {
		return r.MaxInterval
	}
	return time.Duration(d)
}
