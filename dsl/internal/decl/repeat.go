package decl

import (
	"github.com/hashicorp/hcl/v2"

	"github.com/saga-engine/engine/dsl/internal/syntax"
)

// repeat sets s.Repeat to the repeat block of the step s. It reports an error if the loop would
// have no end, or if the step has an attribute that does not fit a loop.
func (d *decoder) repeat(s *Step) {
	b := s.Block.One("repeat")
	if b == nil {
		return
	}
	s.Repeat = b
	if b.Attr("until") == nil && b.Attr("max_iterations") == nil && !b.Broken {
		d.Errorf(b.DefRange, "Loop without end", "A repeat block needs until = CONDITION, or max_iterations = NUMBER, or both.")
	}
	if e := s.Attr("idempotency_key"); e != nil {
		d.Errorf(e.Range, "Key stays the same",
			"idempotency_key would give every iteration of step %q the same key, so only the first would have an effect. Remove it: the engine gives each iteration a key of its own.", s.Name)
	}
	if s.Pivot {
		d.Errorf(b.DefRange, "Not allowed on a pivot", "The pivot is one call that succeeds or not, so it cannot have repeat.")
	}
	if u := s.Block.One("compensate"); u.Attr("by_key") != nil {
		d.Errorf(u.Attr("by_key").Range, "Undo of a loop by key",
			"Each iteration of step %q has a key of its own, and the undo is called once for all of them. Remove by_key, and say in input what to undo: self.output or self.collected.", s.Name)
	}
}

// loopReferences returns those references to self.* that only a step with a repeat block may use.
func (s *Step) loopReferences() allow {
	switch {
	case s.Repeat == nil:
		return 0
	case !s.Collects():
		return allowPrevious
	}
	return allowPrevious | allowCollected
}

// Collects reports whether the step has a repeat block with `collect`.
func (s *Step) Collects() bool { return s.Repeat != nil && s.Repeat.Attr("collect") != nil }

// refLoop checks a reference to self.previous or self.collected. After an error it returns false.
func (d referenceDecoder) refLoop(name string, at hcl.Range, a allow) bool {
	switch {
	case name == "previous" && a&allowPrevious == 0, name == "collected" && a&(allowPrevious|allowCollected) == 0:
		d.Errorf(at, "Reference not available here",
			"self.%s can be used only in a step with a repeat block: in when, input, value, timer, wait, conditions, compensate.input and in the repeat block itself, except max_iterations.", name)
		return false
	case name == "collected" && a&allowCollected == 0:
		d.Errorf(at, "Nothing is collected", "self.collected holds what collect = ... in the repeat block appends, and the block has no collect.")
		return false
	}
	return true
}

// resolveRepeat compiles the expressions of the repeat block of a step. The function use compiles
// one expression. Its second argument says which references are allowed.
func (s *Step) resolveRepeat(use func(name string, b *syntax.Block, a allow)) {
	if s.Repeat == nil {
		return
	}
	ended := allowForward | allowEach | allowSelf | s.loopReferences()
	use("collect", s.Repeat, ended)
	use("until", s.Repeat, ended)
	use("interval", s.Repeat, ended)
}
