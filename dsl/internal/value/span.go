package value

import (
	"errors"
	"fmt"
	"strconv"
	"time"

	"github.com/zclconf/go-cty/cty"
)

const (
	day = 24 * time.Hour
	// maxSpan is the longest duration. Sums of a few such durations do not overflow.
	maxSpan = 100 * 366 * day
)

// ErrSpan says that a text is not a duration, and shows how to write a duration.
var ErrSpan = errors.New(`a duration is a string such as "500ms", "90s", "36h" or "2d"`)

// ParseSpan parses a duration such as "90s", "1h30m" or "2d12h". A duration of zero, or longer
// than maxSpan, is an error.
func ParseSpan(s string) (time.Duration, error) {
	rest, total := s, 0.0
	if rest == "" {
		return 0, ErrSpan
	}
	for rest != "" {
		n := 0
		for n < len(rest) && (rest[n] >= '0' && rest[n] <= '9' || rest[n] == '.') {
			n++
		}
		num, err := strconv.ParseFloat(rest[:n], 64)
		if n == 0 || err != nil {
			return 0, ErrSpan
		}
		rest = rest[n:]
		u := 0
		for u < len(rest) && (rest[u] < '0' || rest[u] > '9') && rest[u] != '.' {
			u++
		}
		unit, ok := spanUnits[rest[:u]]
		if !ok {
			return 0, ErrSpan
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

// SpanText returns the text of a duration for people, such as "2d12h". A duration of ten seconds
// or more has at most two units, and no fractions of a second.
func SpanText(d time.Duration) string {
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

// unitText returns the text of a duration in two units. It leaves out the smaller unit if the
// number before this unit is zero.
func unitText(d, big time.Duration, bigName string, small time.Duration, smallName string) string {
	out := fmt.Sprintf("%d%s", d/big, bigName)
	if rest := d % big / small; rest > 0 {
		out += fmt.Sprintf("%d%s", rest, smallName)
	}
	return out
}

// SpanOf converts a value to a duration. It returns ErrSpan if the value is not a string.
func SpanOf(v cty.Value) (time.Duration, error) {
	s, err := StringOf(v)
	if err != nil {
		return 0, ErrSpan
	}
	return ParseSpan(s)
}
