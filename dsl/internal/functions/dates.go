package functions

import (
	"errors"
	"fmt"
	"time"

	"github.com/zclconf/go-cty/cty"
	"github.com/zclconf/go-cty/cty/function"
	"github.com/zclconf/go-cty/cty/function/stdlib"

	"github.com/saga-engine/engine/dsl/internal/value"
	"github.com/saga-engine/engine/dsl/span"
)

var (
	// timeAddFunc adds a duration to a point in time. Unlike stdlib.TimeAdd, it accepts days, too.
	timeAddFunc = textPair("timestamp", "duration", cty.String, func(at, text string) (cty.Value, error) {
		span, err := span.Offset(text)
		if err != nil {
			return cty.NilVal, function.NewArgError(1, err)
		}
		return stdlib.TimeAdd(cty.StringVal(at), cty.StringVal(span.String()))
	})

	timeCmpFunc = twoTimes(func(a, b time.Time) (cty.Value, error) { return cty.NumberIntVal(int64(a.Compare(b))), nil })

	// timeDiffFunc returns the time from b to a in seconds. The number is negative if a is earlier.
	timeDiffFunc = twoTimes(func(a, b time.Time) (cty.Value, error) {
		seconds, nanos := a.Unix()-b.Unix(), int64(a.Nanosecond()-b.Nanosecond())
		if seconds > 0 && nanos < 0 {
			seconds, nanos = seconds-1, nanos+int64(time.Second)
		} else if seconds < 0 && nanos > 0 {
			seconds, nanos = seconds+1, nanos-int64(time.Second)
		}
		return secondsOf(seconds, nanos)
	})

	durationSecondsFunc = textFunction("duration", func(text string) (cty.Value, error) {
		span, err := span.Offset(text)
		if err != nil {
			return cty.NilVal, function.NewArgError(0, err)
		}
		return secondsOf(int64(span/time.Second), int64(span%time.Second))
	}, cty.Number)
)

// twoTimes returns a function of the language that has two points in time as arguments. The
// parameter `impl` computes the result, which is a number.
func twoTimes(impl func(a, b time.Time) (cty.Value, error)) function.Function {
	return textPair("a", "b", cty.Number, func(a, b string) (cty.Value, error) {
		var times [2]time.Time
		for i, text := range []string{a, b} {
			at, err := time.Parse(time.RFC3339, text)
			if err != nil {
				return cty.NilVal, function.NewArgError(i, errInstant)
			}
			times[i] = at
		}
		return impl(times[0], times[1])
	})
}

var errInstant = errors.New(`a point in time as in RFC 3339 is required, such as "2030-01-31T18:00:00Z"`)

// secondsOf returns a duration as an exact decimal number of seconds. The duration is the sum
// of the parameter `seconds` and the parameter `nanos`, a number of nanoseconds. The two
// parameters must not have different signs.
func secondsOf(seconds, nanos int64) (cty.Value, error) {
	sign := ""
	if seconds < 0 || nanos < 0 {
		sign = "-"
	}
	return value.ParseNumber(fmt.Sprintf("%s%d.%09d", sign, max(seconds, -seconds), max(nanos, -nanos)))
}
