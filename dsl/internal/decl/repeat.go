package decl

import (
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

// resolveRepeat compiles the expressions of the repeat block of a step. The parameter `use` is a
// function that compiles one attribute of a block. Its parameter `a` says which references are
// allowed.
func (s *Step) resolveRepeat(use func(name string, b *syntax.Block, a allow)) {
	if s.Repeat == nil {
		return
	}
	ended := allowForward | allowEach | allowSelf | s.loopReferences()
	use("collect", s.Repeat, ended)
	use("until", s.Repeat, ended)
	use("interval", s.Repeat, ended)
}
