package decl

import (
	"github.com/saga-engine/engine/dsl/diag"
	"github.com/saga-engine/engine/dsl/internal/syntax"
)

// rejectsWhenFull reports whether a concurrency block says when_full = "reject". The block may be
// nil.
func (d literalDecoder) rejectsWhenFull(b *syntax.Block) bool {
	e := b.Attr("when_full")
	if e == nil {
		return false
	}
	switch text, ok := d.literalText(e, "when_full"); {
	case !ok || text == "queue":
	case text == "reject":
		return true
	default:
		d.Errorf(e.Range, "Invalid value for when_full",
			`when_full is "queue", so that the run waits until there is room, or "reject", so that the submission is refused.%s`,
			diag.DidYouMean(text, []string{"queue", "reject"}))
	}
	return false
}
