package model

import "time"

// An Instant is a time on the store's clock, in microseconds since 1970. PostgreSQL stores
// times with the same precision. 0 means no time.
type Instant int64

// ToInstant converts a time to an Instant. The zero time becomes 0.
func ToInstant(t time.Time) Instant {
	if t.IsZero() {
		return 0
	}
	return Instant(t.UnixMicro())
}

// Time converts the instant to a time in UTC. 0 becomes the zero time.
func (i Instant) Time() time.Time {
	if i == 0 {
		return time.Time{}
	}
	return time.UnixMicro(int64(i)).UTC()
}

// Add returns the instant that is d later. If d is positive, Add adds at least one microsecond, so
// that a planned time is always later than the present time. If d is zero or negative, Add returns
// i. The result is never later than the end of the year 9999.
func (i Instant) Add(d time.Duration) Instant {
	const end = Instant(253402300799000000)
	if d <= 0 {
		return i
	}
	if sum := i + max(1, Instant(d.Microseconds())); sum < end {
		return sum
	}
	return end
}

// Earliest returns the earlier one of two instants. An instant that is 0 means no time and is
// ignored. If both are 0, Earliest returns 0.
func Earliest(a, b Instant) Instant {
	if a == 0 || (b != 0 && b < a) {
		return b
	}
	return a
}
