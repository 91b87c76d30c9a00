package quota

import (
	"slices"
	"time"
)

// A CallRow is a stored row. It says how many calls count against a limit until a certain time. The
// function Calls returns rows with new content: each of them replaces the stored row that has the
// same Until. If the field Calls of the new row is 0, the store removes the stored row.
type CallRow struct {
	Until time.Time // store time at which the row expires
	Calls int
}

// grains is the number of intervals into which a period is divided. One row holds the number of all
// calls that stop counting against the limit in the same interval. So a limit has few rows, even if
// it allows very many calls.
const grains = 64

// Calls computes the answer to a CallAsk. The parameter `rows` holds all rows of the limit, also
// rows whose time has passed. Calls returns the changes that the store makes.
//
// A call counts for a whole period after the last moment at which the engine may start it. So no
// more than CallAsk.Most calls start in any period, wherever the period begins. When an engine
// starts no more calls with a CallGrant, it reports how many calls of the CallGrant it has started
// (Usage). Then the other calls are free at once. The started calls count only for a period after
// the last start.
func Calls(rows []CallRow, ask CallAsk, now time.Time) (changes []CallRow, grant CallGrant) {
	counted := map[int64]int{} // calls by the time until which they count, in microseconds
	for _, r := range rows {
		if r.Until.After(now) {
			counted[r.Until.UnixMicro()] += r.Calls
		} else {
			changes = append(changes, CallRow{Until: r.Until})
		}
	}
	put := func(until time.Time, calls int) {
		key := until.UnixMicro()
		counted[key] = max(0, counted[key]+calls)
		c := CallRow{Until: until, Calls: counted[key]}
		if i := slices.IndexFunc(changes, func(c CallRow) bool { return c.Until.UnixMicro() == key }); i >= 0 {
			changes[i] = c
		} else {
			changes = append(changes, c)
		}
	}
	if s := ask.Usage; s.Calls > 0 && s.Until.After(now) && counted[s.Until.UnixMicro()] >= s.Calls {
		put(s.Until, -s.Calls)
		if until := grain(s.Until.Add(-max(0, s.Spare)), ask.Per); s.Used > 0 && until.After(now) {
			put(until, s.Used)
		}
	}
	free := ask.Most
	for _, n := range counted {
		free -= n
	}
	if grant.Calls = max(0, min(ask.Want, free)); grant.Calls > 0 {
		grant.Until = grain(now.Add(ask.Valid+ask.Per), ask.Per)
		put(grant.Until, grant.Calls)
	}
	if grant.Calls < ask.Want {
		grant.Wait = wait(counted, ask, free-grant.Calls, now)
	}
	return changes, grant
}

// wait returns how long it takes until the next call may be free. The parameter `free` is the
// number of calls that are free now. It is negative if the limit has become smaller.
func wait(counted map[int64]int, ask CallAsk, free int, now time.Time) time.Duration {
	var ends []int64
	for end, n := range counted {
		if n > 0 {
			ends = append(ends, end)
		}
	}
	slices.Sort(ends)
	for _, end := range ends {
		if free += counted[end]; free > 0 {
			return max(time.Microsecond, time.UnixMicro(end).Sub(now))
		}
	}
	return ask.Per
}

// grain divides time into intervals, and returns the end of the interval in which the time `t` is.
// An interval is as long as `per` divided by `grains`, but at least 1 microsecond. The result has
// whole microseconds.
func grain(t time.Time, per time.Duration) time.Time {
	size := max(per/grains, time.Microsecond).Microseconds()
	at := t.UnixMicro()
	if t.Nanosecond()%1000 != 0 {
		at++
	}
	return time.UnixMicro((at + size - 1) / size * size).UTC()
}
