// Package span reads and writes durations as people write them in workflows and in flags of
// commands, such as "90s" or "1d12h". It converts a text to a time.Duration, and a time.Duration to
// a text. Its errors say how to write a duration.
package span

import (
	"errors"
	"fmt"
	"math"
	"math/bits"
	"strconv"
	"strings"
	"time"
)

const (
	day = 24 * time.Hour
	// longest is the longest duration that Parse accepts: 100 years of 366 days. Twice this
	// duration still fits into a time.Duration, so the sum of two durations does not overflow.
	longest = 100 * 366 * day
)

// ErrFormat says that a text is not a duration, and shows how to write a duration.
var ErrFormat = errors.New(`a duration is a string such as "500ms", "90s", "36h" or "2d"`)

// ErrZero says that a duration is zero, although it must be longer.
var ErrZero = errors.New("a duration is greater than zero")

// Parse parses a duration such as "90s", "1h30m" or "2d12h". A duration of zero, or of more than
// 100 years, is an error.
func Parse(s string) (time.Duration, error) {
	span, err := parseUnits(s)
	switch {
	case err != nil:
		return 0, err
	case span > longest:
		return 0, errLong
	case span < 1:
		return 0, ErrZero
	}
	return span, nil
}

// Offset parses a distance between two times: a duration such as "90s" or "1d12h". It may be zero,
// and may have a sign, as in "-1d". A distance of more than 292 years is an error.
func Offset(s string) (time.Duration, error) {
	rest, negative := strings.CutPrefix(s, "-")
	if !negative {
		rest = strings.TrimPrefix(s, "+")
	}
	if rest == "0" {
		return 0, nil
	}
	span, err := parseUnits(rest)
	switch {
	case errors.Is(err, ErrFormat):
		err = errors.New(`a duration such as "90s", "36h" or "-2d" is required`)
	case err != nil:
		err = errors.New("a duration is at most 292 years")
	}
	if negative {
		span = -span
	}
	return span, err
}

var errLong = errors.New("a duration is at most 100 years")

// parseUnits parses numbers with units, such as "1d12h", and returns their sum. The numbers have
// no sign. If the sum does not fit into a time.Duration, parseUnits returns errLong.
func parseUnits(s string) (time.Duration, error) {
	rest, total := s, time.Duration(0)
	if rest == "" {
		return 0, ErrFormat
	}
	for rest != "" {
		n := 0
		for n < len(rest) && (rest[n] >= '0' && rest[n] <= '9' || rest[n] == '.') {
			n++
		}
		number := rest[:n]
		rest = rest[n:]
		u := 0
		for u < len(rest) && (rest[u] < '0' || rest[u] > '9') && rest[u] != '.' {
			u++
		}
		unit, ok := units[rest[:u]]
		if !ok {
			return 0, ErrFormat
		}
		rest = rest[u:]
		part, err := times(number, unit)
		if err != nil {
			return 0, err
		}
		if total += part; total < 0 {
			return 0, errLong
		}
	}
	return total, nil
}

// times returns the product of a number, such as "1.5", and a unit. It cuts off the part of the
// product that is less than a nanosecond.
func times(number string, unit time.Duration) (time.Duration, error) {
	whole, fraction, _ := strings.Cut(number, ".")
	if whole == "" && fraction == "" || strings.Contains(fraction, ".") {
		return 0, ErrFormat
	}
	n, part := uint64(0), uint64(0)
	if whole != "" {
		var err error
		if n, err = strconv.ParseUint(whole, 10, 64); err != nil || n > uint64(math.MaxInt64/unit) {
			return 0, errLong // the text has only digits, so an error means that the number is too large
		}
	}
	if fraction != "" {
		fraction = fraction[:min(len(fraction), 18)] // later digits are less than a nanosecond
		digits, err := strconv.ParseUint(fraction, 10, 64)
		if err != nil {
			return 0, ErrFormat
		}
		high, low := bits.Mul64(digits, uint64(unit))
		part, _ = bits.Div64(high, low, uint64(math.Pow10(len(fraction))))
	}
	product := time.Duration(n)*unit + time.Duration(part)
	if product < 0 {
		return 0, errLong
	}
	return product, nil
}

var units = map[string]time.Duration{
	"ns": time.Nanosecond, "us": time.Microsecond, "µs": time.Microsecond, "μs": time.Microsecond, "ms": time.Millisecond,
	"s": time.Second, "m": time.Minute, "h": time.Hour, "d": day,
}

// Text returns the text of a duration for people, such as "2d12h". A duration of ten seconds
// or more has at most two units, and no fractions of a second.
func Text(d time.Duration) string {
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
