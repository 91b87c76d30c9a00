package decl

import (
	"errors"
	"regexp"
	"strconv"

	"github.com/zclconf/go-cty/cty"

	"github.com/saga-engine/engine/dsl/internal/eval"
	"github.com/saga-engine/engine/dsl/internal/noun"
)

// maxRate is the largest number of calls in a rate limit.
const maxRate = 1_000_000

var ratePattern = regexp.MustCompile(`^ *([0-9]+) */ *([a-z]+) *$`)

var errRate = errors.New(`write the number of calls that may start in a period, such as "100/s", "10/m", "5/h" or "1000/d"`)

// decodeRate reads rate_limit of an agent block.
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
