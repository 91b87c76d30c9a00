package chaos

import (
	"fmt"
	"math/rand/v2"
	"strings"
	"time"
)

// A Flow is a generated workflow, with the facts about its steps that Judge needs.
type Flow struct {
	Source string // source text of the module
	Steps  []Step // steps in the order of the source
}

// A Step is one step of a generated workflow.
type Step struct {
	Name   string
	Action string   // action of the agent: do, once, blind or many
	After  []int    // steps that this step depends on, as indexes into Flow.Steps
	Keys   []string // keys of the instances of a for_each step; nil = the step has no for_each
	// Gate is the source text in the block of another step, which runs after the steps in After and
	// before this step. It is a timer, a wait, or the start of a child run. "" = no such step.
	Gate string
}

// Honours reports whether the remote service applies the step's effect at most once for each
// idempotency key.
func (s Step) Honours() bool { return s.Action == "do" || s.Action == "many" }

// Names returns the name of the step as agents see it. For a for_each step, it returns the name
// of each instance.
func (s Step) Names() []string {
	if s.Keys == nil {
		return []string{s.Name}
	}
	var names []string
	for _, k := range s.Keys {
		names = append(names, fmt.Sprintf("%s[%q]", s.Name, k))
	}
	return names
}

// stepTimeout is the timeout of each generated step.
const stepTimeout = 2 * time.Second

// An ending says how a generated workflow should end.
type ending int

const (
	endWell ending = iota
	endUndone
	endParked
)

// faultsOf lists, for each action, the faults that may be injected into a call of a step that
// must succeed. After such a fault, the engine repeats the call until it succeeds.
var faultsOf = map[string][]string{
	"do":    {"refuse", "vanish", "lose", "hang", "crash", "die", "twice", "linger:150ms", "slow:100ms", "stubborn", "exit"},
	"many":  {"refuse", "lose", "crash", "linger:100ms"},
	"once":  {"refuse", "lose", "vanish", "linger:150ms", "crash", "hang"},
	"blind": {"refuse", "linger:150ms", "slow:100ms"},
}

// NewFlow generates a workflow and the faults of its calls. The parameter `url` is the URL of the
// ledger. Of 100 generated workflows, approximately 60 should succeed, 25 should be undone, and 15
// should be parked.
func NewFlow(rng *rand.Rand, url string) Flow {
	end := endWell
	switch n := rng.IntN(100); {
	case n >= 85:
		end = endParked
	case n >= 60:
		end = endUndone
	}
	var f Flow
	var b strings.Builder
	head(&b, url)
	n := 2 + rng.IntN(4)
	for i := range n {
		s := Step{Name: fmt.Sprintf("s%d", i), Action: pick(rng, "do", "do", "do", "once", "once", "blind", "many")}
		for j := range i {
			if rng.IntN(2) == 0 {
				s.After = append(s.After, j)
			}
		}
		if s.Action != "many" && rng.IntN(5) == 0 {
			s.Keys = []string{"a", "b", "c"}
		}
		words := faults(rng, s.Action)
		undo := undoFaults(rng)
		s.Gate = gate(rng)
		last := i == n-1
		park := ""
		switch {
		case last && end == endUndone:
			words, s.Action, s.Keys = []string{"deny"}, "do", nil
		case last && end == endParked:
			words, s.Action, s.Keys = []string{"refuse", "refuse", "refuse", "refuse", "refuse", "refuse"}, "do", nil
			park = "      on_exhausted = \"park\"\n"
		}
		f.Steps = append(f.Steps, s)
		f.write(&b, s, words, undo, park)
	}
	b.WriteString("}\n")
	f.Source = b.String()
	return f
}

// head writes the agent block and the beginning of the workflow block.
func head(b *strings.Builder, url string) {
	fmt.Fprintf(b, "agent \"far\" {\n  plugin          = \"ledger\"\n  max_concurrency = 64\n  config { url = %q }\n  circuit_breaker {\n    trip_after = 1000\n  }\n}\n", url)
	b.WriteString("workflow \"w\" {\n  deadline = \"5m\"\n  compensation { deadline = \"5m\" }\n")
}

// write writes the source text of the step s. The parameter `words` holds the faults for the calls
// of the step, and the parameter `undo` holds the faults for the undos. The parameter `park` is a
// further line for the retry block; "" = no further line.
func (f *Flow) write(b *strings.Builder, s Step, words, undo []string, park string) {
	var after []string
	for _, j := range s.After {
		after = append(after, "step."+f.Steps[j].Name)
	}
	if s.Gate != "" {
		fmt.Fprintf(b, "  step %q {\n    depends_on = [%s]\n    %s\n  }\n", "gate_"+s.Name, strings.Join(after, ", "), s.Gate)
		after = append(after, "step.gate_"+s.Name)
	}
	fmt.Fprintf(b, "  step %q {\n    action  = agent.far.%s\n    timeout = %q\n", s.Name, s.Action, stepTimeout.String())
	if s.Keys != nil {
		fmt.Fprintf(b, "    for_each = toset([\"%s\"])\n", strings.Join(s.Keys, `", "`))
	}
	if len(after) > 0 {
		fmt.Fprintf(b, "    depends_on = [%s]\n", strings.Join(after, ", "))
	}
	attempts := 6
	if s.Action == "once" || s.Action == "blind" {
		attempts = 4
	}
	b.WriteString("    retry {\n")
	fmt.Fprintf(b, "      max_attempts = %d\n      initial_interval = \"50ms\"\n      max_interval = \"200ms\"\n", attempts)
	b.WriteString(park + "    }\n")
	b.WriteString("    input {\n")
	fmt.Fprintf(b, "      faults      = %q\n      undo_faults = %q\n", strings.Join(words, ","), strings.Join(undo, ","))
	if s.Action == "many" {
		b.WriteString("      parts       = 4\n")
	}
	b.WriteString("    }\n  }\n")
}

// faults returns random faults for the first calls of a step; nil = no call has a fault.
func faults(rng *rand.Rand, action string) []string {
	var words []string
	for rng.IntN(3) == 0 && len(words) < 2 {
		words = append(words, pick(rng, faultsOf[action]...))
	}
	return words
}

// undoFaults returns a random fault for the first call of an undo; nil = no fault.
func undoFaults(rng *rand.Rand) []string {
	if rng.IntN(3) > 0 {
		return nil
	}
	return []string{pick(rng, "refuse", "lose", "vanish", "crash", "hang", "linger:100ms")}
}

func pick(rng *rand.Rand, from ...string) string { return from[rng.IntN(len(from))] }

// flowOf returns a Flow with the given steps and faults. The function in the parameter `head`
// writes the text before the steps.
func flowOf(url string, head func(*strings.Builder, string), steps ...flowStep) Flow {
	var f Flow
	var b strings.Builder
	head(&b, url)
	for _, s := range steps {
		f.Steps = append(f.Steps, s.Step)
		f.write(&b, s.Step, strings.Split(s.words, ","), strings.Split(s.undo, ","), s.park)
	}
	b.WriteString("}\n")
	f.Source = b.String()
	return f
}

// A flowStep is a step of a Flow that flowOf makes.
type flowStep struct {
	Step
	// The field `words` lists the faults of the calls, separated by commas. The field `undo` lists
	// the faults of the undos in the same way. The field `park` is a further line of the retry
	// block; "" = none.
	words, undo, park string
}
