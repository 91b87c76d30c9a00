package model

import "time"

// An Instant is a time on the store's clock, in microseconds since 1970. PostgreSQL stores
// times with the same precision. 0 means no time.
type Instant int64

// ToInstant returns the time in microseconds; 0 for the zero time.
func ToInstant(t time.Time) Instant {
	if t.IsZero() {
		return 0
	}
	return Instant(t.UnixMicro())
}

// Time returns the instant in UTC; the zero time for 0.
func (i Instant) Time() time.Time {
	if i == 0 {
		return time.Time{}
	}
	return time.UnixMicro(int64(i)).UTC()
}

// Add returns the instant d later. A positive d adds at least one microsecond, so that a
// planned time is always later than the present one. The result never passes the year 9999.
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

// Earliest returns the smaller of two instants. An instant that is 0 is not set and is
// ignored.
func Earliest(a, b Instant) Instant {
	if a == 0 || (b != 0 && b < a) {
		return b
	}
	return a
}
