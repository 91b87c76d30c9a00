package noun

import (
	"fmt"
	"time"
)

// A RateLimit is the largest number of calls that start in any period of the given length. The zero
// RateLimit is no limit.
type RateLimit struct {
	Calls int
	Per   time.Duration // a second, a minute, an hour or a day
}

// rateUnits lists the periods that a rate limit may have, with their units in a definition.
var rateUnits = []struct {
	Unit string
	Per  time.Duration
}{{"s", time.Second}, {"m", time.Minute}, {"h", time.Hour}, {"d", 24 * time.Hour}}

// RatePeriod returns the period of a unit, such as one minute for "m". The result `ok` is false
// if there is no such unit.
func RatePeriod(unit string) (per time.Duration, ok bool) {
	for _, u := range rateUnits {
		if u.Unit == unit {
			return u.Per, true
		}
	}
	return 0, false
}

// String returns the limit in the form of the argument `rate_limit`, such as "100/s". It returns ""
// if there is no limit.
func (r RateLimit) String() string {
	for _, u := range rateUnits {
		if u.Per == r.Per && r.Calls > 0 {
			return fmt.Sprintf("%d/%s", r.Calls, u.Unit)
		}
	}
	return ""
}
