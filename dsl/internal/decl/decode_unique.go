package decl

import (
	"time"

	"github.com/saga-engine/engine/dsl/diag"
	"github.com/saga-engine/engine/dsl/internal/noun"
	"github.com/saga-engine/engine/dsl/internal/syntax"
)

// maxRetain is the longest time for which a goal is kept, if it has an end: 100 years.
const maxRetain = 100 * 365 * 24 * time.Hour

// readUnique reads the arguments of a unique block, except for its key, into w.UniqueRule. The block
// may be nil.
func readUnique(d *decoder, b *syntax.Block, w *Workflow) {
	scopes := map[string]noun.Scope{"active": noun.ScopeActive, "goal": noun.ScopeGoal, "ever": noun.ScopeEver}
	u := &w.UniqueRule
	if e := b.Attr("scope"); e != nil {
		if text, ok := d.lit.literalText(e, "scope"); ok {
			if u.Scope, ok = scopes[text]; !ok {
				d.Errorf(e.Range, "Invalid value for scope",
					`scope is "active" (one open run for each key), "goal" (no other run after one has succeeded), or "ever" (one run for each key, for ever).%s`,
					diag.DidYouMean(text, []string{"active", "goal", "ever"}))
			}
		}
	}
	if e := b.Attr("on_conflict"); e != nil {
		if text, ok := d.lit.literalText(e, "on_conflict"); ok {
			if u.Reject = text == "reject"; text != "reject" && text != "attach" {
				d.Errorf(e.Range, "Invalid value for on_conflict",
					`on_conflict is "attach", so that the submission returns the run that holds the key, or "reject", so that the submission is refused.%s`,
					diag.DidYouMean(text, []string{"attach", "reject"}))
			}
		}
	}
	e := b.Attr("retain")
	d.span(e, "retain", &u.Retain)
	switch {
	case u.Retain == 0:
	case u.Scope != noun.ScopeGoal:
		d.Errorf(e.Range, "Retain without a goal", `retain says how long a goal that is reached is kept, so it needs scope = "goal". Remove retain, or change scope.`)
	case u.Retain > maxRetain || u.Retain < time.Second || u.Retain%time.Microsecond != 0:
		d.Errorf(e.Range, "Invalid value for retain", "A goal is kept for 1s to 876000h (100 years). Without retain it is kept until a person resets it.")
	}
}
