package decl

import (
	"errors"
	"regexp"
	"strconv"
	"time"

	"github.com/zclconf/go-cty/cty"

	"github.com/saga-engine/engine/dsl/diag"
	"github.com/saga-engine/engine/dsl/internal/eval"
	"github.com/saga-engine/engine/dsl/internal/noun"
	"github.com/saga-engine/engine/dsl/internal/syntax"
)

// maxRate is the largest number of calls in a rate limit.
const maxRate = 1_000_000

var ratePattern = regexp.MustCompile(`^ *([0-9]+) */ *([a-z]+) *$`)

var errRate = errors.New(`write the number of calls that may start in a period, such as "100/s", "10/m", "5/h" or "1000/d"`)

// decodeRate reads the argument rate_limit of an agent block into the parameter out. After an error,
// and without the argument, out does not change.
func decodeRate(d *decoder, e *eval.Expr, out *noun.RateLimit) {
	if e == nil {
		return
	}
	v, ok := d.lit.constant(e, mustBeKnown("rate_limit"))
	if !ok {
		return
	}
	if v.IsNull() || !v.IsWhollyKnown() || v.Type() != cty.String {
		d.Invalid(e.Range, "rate_limit", errRate)
		return
	}
	part := ratePattern.FindStringSubmatch(v.AsString())
	if part == nil {
		d.Invalid(e.Range, "rate_limit", errRate)
		return
	}
	per, ok := noun.RatePeriod(part[2])
	n, err := strconv.Atoi(part[1])
	switch {
	case !ok:
		d.Errorf(e.Range, "Invalid value for rate_limit", "rate_limit: %q is not a period: use s for a second, m for a minute, h for an hour or d for a day.", part[2])
	case err != nil || n < 1 || n > maxRate:
		d.Errorf(e.Range, "Invalid value for rate_limit",
			"rate_limit: the number of calls is a whole number from 1 to %d. To let no call start, pause the runs (engine pause) instead. To have no limit, remove the argument.", maxRate)
	default:
		*out = noun.RateLimit{Calls: n, Per: per}
	}
}

// leastRetention is the shortest time that runs are kept. A client that waits for the end of a run
// must have time to read the run.
const leastRetention = time.Minute

// readRetention reads the argument `retention` of a workflow into w.Retention. The retention is the
// same for all runs of a definition, so the argument must not refer to anything.
func readRetention(d *decoder, b *syntax.Block, w *Workflow) {
	e := b.Attr("retention")
	d.span(e, "retention", &w.Retention)
	if w.Retention > 0 && w.Retention < leastRetention {
		d.Errorf(e.Range, "Invalid value for retention", "A run is kept for at least 1m after its end, so that clients can read its result.")
	}
}

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
			`when_full is "queue", so that the run waits until there is room, or "reject", so that the submission is refused or the group fails.%s`,
			diag.DidYouMean(text, []string{"queue", "reject"}))
	}
	return false
}
