package dsl

import (
	"errors"
	"fmt"
	"math"
	"math/big"
	"strconv"
	"strings"
	"time"

	"github.com/zclconf/go-cty/cty"
	"github.com/zclconf/go-cty/cty/convert"
)

const (
	day = 24 * time.Hour
	// maxSpan keeps sums of durations far from overflow.
	maxSpan = 100 * 366 * day
)

// errSpan says how a duration is written.
var errSpan = errors.New(`a duration is a string such as "500ms", "90s", "36h" or "2d"`)

// errLimit says how a deadline is written.
var errLimit = errors.New(`a deadline is a duration such as "90s", "36h" or "2d", or a time such as "2030-01-31T18:00:00Z"`)

// parseSpan reads a positive duration such as "90s", "1h30m" or "2d12h".
func parseSpan(s string) (time.Duration, error) {
	rest, total := s, 0.0
	if rest == "" {
		return 0, errSpan
	}
	for rest != "" {
		n := 0
		for n < len(rest) && (rest[n] >= '0' && rest[n] <= '9' || rest[n] == '.') {
			n++
		}
		num, err := strconv.ParseFloat(rest[:n], 64)
		if n == 0 || err != nil {
			return 0, errSpan
		}
		rest = rest[n:]
		u := 0
		for u < len(rest) && (rest[u] < '0' || rest[u] > '9') && rest[u] != '.' {
			u++
		}
		unit, ok := spanUnits[rest[:u]]
		if !ok {
			return 0, errSpan
		}
		total += num * float64(unit)
		rest = rest[u:]
	}
	if total > float64(maxSpan) {
		return 0, errors.New("a duration is at most 100 years")
	}
	if total < 1 {
		return 0, errors.New("a duration is greater than zero")
	}
	return time.Duration(total), nil
}

var spanUnits = map[string]time.Duration{
	"ns": time.Nanosecond, "us": time.Microsecond, "µs": time.Microsecond, "ms": time.Millisecond,
	"s": time.Second, "m": time.Minute, "h": time.Hour, "d": day,
}

// parseLimit reads a deadline: a duration or an RFC 3339 time.
func parseLimit(s string) (Limit, error) {
	if strings.Contains(s, "T") && strings.Contains(s, "-") {
		at, err := time.Parse(time.RFC3339, s)
		if err != nil {
			return Limit{}, errors.New(`a point in time is written as in RFC 3339, such as "2030-01-31T18:00:00Z"`)
		}
		return Limit{At: at}, nil
	}
	span, err := parseSpan(s)
	if errors.Is(err, errSpan) {
		err = errLimit
	}
	return Limit{After: span}, err
}

// spanText writes a duration for people: at most two units, whole seconds
// from ten seconds on.
func spanText(d time.Duration) string {
	switch {
	case d >= day:
		return unitText(d, day, "d", time.Hour, "h")
	case d >= time.Hour:
		return unitText(d, time.Hour, "h", time.Minute, "m")
	case d >= time.Minute:
		return unitText(d, time.Minute, "m", time.Second, "s")
	case d >= 10*time.Second:
		return fmt.Sprintf("%ds", d/time.Second)
	}
	return d.String()
}

// unitText writes a duration in two units; the smaller one only if it is not zero.
func unitText(d, big time.Duration, bigName string, small time.Duration, smallName string) string {
	out := fmt.Sprintf("%d%s", d/big, bigName)
	if rest := d % big / small; rest > 0 {
		out += fmt.Sprintf("%d%s", rest, smallName)
	}
	return out
}

// stringOf converts a known value to a string.
func stringOf(v cty.Value) (string, error) {
	v, _ = v.UnmarkDeep()
	s, err := convertScalar(v, cty.String)
	switch {
	case err != nil:
		return "", err
	case s.IsNull():
		return "", errors.New("a value is required, this is null")
	case !s.IsKnown():
		return "", errors.New("the value is not known")
	}
	return s.AsString(), nil
}

// spanOf converts a value to a duration.
func spanOf(v cty.Value) (time.Duration, error) {
	s, err := stringOf(v)
	if err != nil {
		return 0, errSpan
	}
	return parseSpan(s)
}

// limitOf converts a value to a deadline.
func limitOf(v cty.Value) (Limit, error) {
	s, err := stringOf(v)
	if err != nil {
		return Limit{}, errLimit
	}
	return parseLimit(s)
}

// boolOf converts a value to a bool.
func boolOf(v cty.Value) (bool, error) {
	v, _ = v.UnmarkDeep()
	b, err := convert.Convert(v, cty.Bool)
	switch {
	case err != nil:
		return false, err
	case b.IsNull():
		return false, errors.New("true or false is required, this is null")
	case !b.IsKnown():
		return false, errors.New("the value is not known")
	}
	return b.True(), nil
}

// stringsOf converts a value to a list of strings.
func stringsOf(v cty.Value) ([]string, error) {
	v, _ = v.UnmarkDeep()
	l, err := convert.Convert(v, cty.List(cty.String))
	switch {
	case err != nil:
		return nil, errors.New("a list of strings is required")
	case l.IsNull():
		return nil, errors.New("a list of strings is required, this is null")
	case !l.IsWhollyKnown():
		return nil, errors.New("the value is not known")
	}
	out := make([]string, 0, l.LengthInt())
	for _, e := range l.AsValueSlice() {
		if e.IsNull() {
			return nil, errors.New("a list of strings is required, one is null")
		}
		out = append(out, e.AsString())
	}
	return out, nil
}

// wholeNumber converts a value to an int between lo and hi.
func wholeNumber(v cty.Value, lo, hi int) (int, error) {
	f, err := numberOf(v)
	if err != nil || !f.IsInt() || f.Cmp(big.NewFloat(float64(lo))) < 0 || f.Cmp(big.NewFloat(float64(hi))) > 0 {
		if hi >= math.MaxInt32 {
			return 0, fmt.Errorf("a whole number of at least %d is required", lo)
		}
		return 0, fmt.Errorf("a whole number from %d to %d is required", lo, hi)
	}
	n, _ := f.Int64()
	return int(n), nil
}

// numberOf converts a known value to a number.
func numberOf(v cty.Value) (*big.Float, error) {
	v, _ = v.UnmarkDeep()
	n, err := convertScalar(v, cty.Number)
	switch {
	case err != nil:
		return nil, err
	case n.IsNull():
		return nil, errors.New("a number is required, this is null")
	case !n.IsKnown():
		return nil, errors.New("the value is not known")
	}
	return n.AsBigFloat(), nil
}
