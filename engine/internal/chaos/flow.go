package chaos

import (
	"fmt"
	"math/rand/v2"
	"strings"
	"time"
)

// A Flow is a generated workflow with the properties that the judge needs.
type Flow struct {
	Source string
	Steps  []Step
}

// A Step is one step of a generated workflow.
type Step struct {
	Name   string
	Action string   // action of the agent: do, once, blind or many
	After  []int    // indexes of the steps that this step depends on
	Keys   []string // keys of a for_each step; nil = one instance
	Caught bool     // the step has a catch for its failure
}

// Honours reports whether the remote service deduplicates the step's calls by key.
func (s Step) Honours() bool { return s.Action == "do" || s.Action == "many" }

// Names returns the names of the step's nodes as agents see them.
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

// stepTimeout is how long each attempt may take.
const stepTimeout = 2 * time.Second

// An ending says how a generated workflow should end.
type ending int

const (
	endWell ending = iota
	endUndone
	endParked
)

// faultsOf lists, for each action, the faults that do not make the step fail: the engine
// repeats its call until it succeeds.
var faultsOf = map[string][]string{
	"do":    {"refuse", "vanish", "lose", "hang", "crash", "die", "twice", "linger:150ms", "slow:100ms", "stubborn", "exit"},
	"many":  {"refuse", "lose", "crash", "linger:100ms"},
	"once":  {"refuse", "lose", "vanish", "linger:150ms", "crash", "hang"},
	"blind": {"refuse", "linger:150ms", "slow:100ms"},
}

// NewFlow generates a workflow. Most workflows should succeed, a quarter should be undone,
// and some should be parked. Some calls have faults.
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

func head(b *strings.Builder, url string) {
	fmt.Fprintf(b, "agent \"far\" {\n  plugin          = \"ledger\"\n  max_concurrency = 64\n  config { url = %q }\n  circuit_breaker {\n    trip_after = 1000\n  }\n}\n", url)
	b.WriteString("workflow \"w\" {\n  deadline = \"5m\"\n  compensation { deadline = \"5m\" }\n")
}

func (f *Flow) write(b *strings.Builder, s Step, words, undo []string, park string) {
	fmt.Fprintf(b, "  step %q {\n    action  = agent.far.%s\n    timeout = %q\n", s.Name, s.Action, stepTimeout.String())
	if s.Keys != nil {
		fmt.Fprintf(b, "    for_each = toset([\"%s\"])\n", strings.Join(s.Keys, `", "`))
	}
	if len(s.After) > 0 {
		var names []string
		for _, j := range s.After {
			names = append(names, "step."+f.Steps[j].Name)
		}
		fmt.Fprintf(b, "    depends_on = [%s]\n", strings.Join(names, ", "))
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

// faults draws the faults of the first calls of a step.
func faults(rng *rand.Rand, action string) []string {
	var words []string
	for rng.IntN(3) == 0 && len(words) < 2 {
		words = append(words, pick(rng, faultsOf[action]...))
	}
	return words
}

func undoFaults(rng *rand.Rand) []string {
	if rng.IntN(3) > 0 {
		return nil
	}
	return []string{pick(rng, "refuse", "lose", "vanish", "crash", "hang", "linger:100ms")}
}

func pick(rng *rand.Rand, from ...string) string { return from[rng.IntN(len(from))] }

// flowOf makes a Flow from steps and the faults of their calls.
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

type flowStep struct {
	Step
	words, undo, park string
}
