package typed

import (
	"math"
	"strings"
	"time"
)

// parseDuration parses a duration as time.ParseDuration does. In addition, it accepts a number of
// days at the beginning, as in "2d" or "-1d12h", because workflows write durations with days. If
// the text is no duration, or if the duration is too large for a time.Duration, parseDuration
// returns false.
func parseDuration(s string) (time.Duration, bool) {
	days, rest, inDays := strings.Cut(s, "d")
	if !inDays {
		d, err := time.ParseDuration(s)
		return d, err == nil
	}
	d, err := time.ParseDuration(days + "h")
	if err != nil || strings.ContainsAny(days, "hmsuµμn") || d > math.MaxInt64/24 || d < -math.MaxInt64/24 {
		return 0, false
	}
	d *= 24
	if rest == "" {
		return d, true
	}
	if strings.ContainsAny(rest[:1], "+-") {
		return 0, false
	}
	more, err := time.ParseDuration(rest)
	if strings.HasPrefix(s, "-") {
		more = -more
	}
	sum := d + more
	return sum, err == nil && (sum < 0) == (d < 0 || d == 0 && more < 0)
}
