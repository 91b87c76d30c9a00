package decl

import (
	"github.com/hashicorp/hcl/v2"

	"github.com/saga-engine/engine/dsl/internal/syntax"
)

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
