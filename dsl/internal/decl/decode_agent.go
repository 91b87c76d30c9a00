package decl

import (
	"errors"
	"math"
	"regexp"
	"sort"
	"strconv"
	"time"

	"github.com/hashicorp/go-version"
	"github.com/zclconf/go-cty/cty"
	"github.com/zclconf/go-cty/cty/convert"

	"github.com/saga-engine/engine/dsl/internal/eval"
	"github.com/saga-engine/engine/dsl/internal/noun"
	"github.com/saga-engine/engine/dsl/internal/syntax"
	"github.com/saga-engine/engine/dsl/internal/value"
	"github.com/saga-engine/engine/dsl/secret"
)

func (d *decoder) agent(b *syntax.Block) *Agent {
	a := &Agent{
		Name: b.Label, Plugin: b.Label, Where: b.DefRange, PluginAt: b.DefRange, Block: b, Instances: 1,
		Breaker: noun.Breaker{TripAfter: 5, Window: time.Minute, Cooldown: 30 * time.Second, Probes: 1},
	}
	if b.Label == noun.ChildAgent && !d.m.Older {
		d.Errorf(b.DefRange, "Reserved name", "The engine uses the agent name %q for child runs. Use another name, and plugin = %q.", noun.ChildAgent, noun.ChildAgent)
	}
	if e := b.Attr("plugin"); e != nil {
		a.PluginAt = e.Range
		if s, ok := d.lit.literalText(e, "plugin"); ok {
			if !syntax.ValidName(s) {
				d.Errorf(e.Range, "Invalid name", "plugin is the NAME of a binary engine-agent-NAME.")
			} else {
				a.Plugin = s
			}
		}
	}
	if e := b.Attr("version"); e != nil {
		if s, ok := d.lit.literalText(e, "version"); ok {
			if _, err := version.NewConstraint(s); err != nil {
				d.Errorf(e.Range, "Invalid version constraint", "Write a constraint such as \">= 0.3\" or \"~> 1.2\".")
			} else {
				a.Constraint = s
			}
		}
	}
	sourceDecoder{d}.read(b, a)
	if e := b.Attr("env"); e != nil {
		a.Env = d.envNames(e)
	}
	if c := b.One("config"); c != nil {
		a.Config = c.Args
	}
	a.Idempotent = d.lit.flag(b, "idempotent", false)
	return a
}

var envName = regexp.MustCompile(`^[A-Za-z_][A-Za-z0-9_]*$`)

func (d *decoder) envNames(e *eval.Expr) []string {
	v, ok := d.lit.literal(e, "env")
	if !ok {
		return nil
	}
	list, err := convert.Convert(v, cty.List(cty.String))
	if err != nil || list.IsNull() {
		d.Errorf(e.Range, "Invalid value for env", "env is a list of names of environment variables.")
		return nil
	}
	names := []string{}
	for _, n := range list.AsValueSlice() {
		if n.IsNull() || !envName.MatchString(n.AsString()) {
			d.Errorf(e.Range, "Invalid value for env", "env is a list of names of environment variables.")
			return nil
		}
		if d.lit.reservedEnv(n.AsString()) {
			d.Errorf(e.Range, "Reserved variable", "env holds %q: %s.", n.AsString(), secret.ReservedEnvRule)
			return nil
		}
		names = append(names, n.AsString())
	}
	sort.Strings(names)
	return names
}

// limits reads circuit_breaker, instances, max_concurrency and rate_limit of an agent block. These
// limits are the same for all runs of a definition, so they must not refer to variables.
func (d *decoder) limits(a *Agent) {
	if a.Block == nil {
		return
	}
	d.whole(a.Block.Attr("instances"), "instances", 1, 1000, &a.Instances)
	d.whole(a.Block.Attr("max_concurrency"), "max_concurrency", 1, 1_000_000, &a.Concurrency)
	decodeRate(d, a.Block.Attr("rate_limit"), &a.Rate)
	b := a.Block.One("circuit_breaker")
	if b == nil {
		return
	}
	br := &a.Breaker
	if b.Attr("failure_ratio") != nil && b.Attr("trip_after") == nil {
		br.TripAfter = 0
	}
	d.whole(b.Attr("trip_after"), "trip_after", 1, math.MaxInt32, &br.TripAfter)
	if e := b.Attr("failure_ratio"); e != nil {
		br.MinCalls = 10
		if v, ok := d.lit.constant(e, mustBeKnown("failure_ratio")); ok {
			n, err := convert.Convert(v, cty.Number)
			f := 0.0
			if err == nil && !n.IsNull() && n.IsWhollyKnown() {
				f, _ = n.AsBigFloat().Float64()
			}
			if f <= 0 || f > 1 {
				d.Errorf(e.Range, "Invalid value for failure_ratio", "failure_ratio is a number above 0 and at most 1.")
			} else {
				br.FailureRatio = f
			}
		}
	}
	d.whole(b.Attr("min_calls"), "min_calls", 1, math.MaxInt32, &br.MinCalls)
	d.span(b.Attr("window"), "window", &br.Window)
	d.span(b.Attr("cool_down"), "cool_down", &br.Cooldown)
	d.whole(b.Attr("probes"), "probes", 1, math.MaxInt32, &br.Probes)
}

// maxRate is the largest number of calls in a rate limit.
const maxRate = 1_000_000

var ratePattern = regexp.MustCompile(`^ *([0-9]+) */ *([a-z]+) *$`)

var errRate = errors.New(`write the number of calls that may start in a period, such as "100/s", "10/m", "5/h" or "1000/d"`)

// decodeRate reads the argument `rate_limit` of an agent block into the parameter `out`. After an
// error, and without the argument, out does not change.
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

func mustBeKnown(name string) string {
	return name + " must be known before a run, so it cannot refer to anything; env() may be used."
}

func (d *decoder) whole(e *eval.Expr, name string, lo, hi int, out *int) {
	if e == nil {
		return
	}
	if v, ok := d.lit.constant(e, mustBeKnown(name)); ok {
		n, err := value.WholeNumber(v, lo, hi)
		if err != nil {
			d.Invalid(e.Range, name, err)
			return
		}
		*out = n
	}
}

func (d *decoder) span(e *eval.Expr, name string, out *time.Duration) {
	if e == nil {
		return
	}
	if v, ok := d.lit.constant(e, mustBeKnown(name)); ok {
		t, err := value.SpanOf(v)
		if err != nil {
			d.Invalid(e.Range, name, err)
			return
		}
		*out = t
	}
}
