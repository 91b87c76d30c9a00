package leash

import (
	"fmt"
	"os"
	"strconv"
	"time"

	"golang.org/x/sys/unix"
)

// A tree of processes that takes more than busyShare of half of the CPUs over busyTime is
// confined to that half. Once it takes less than calmShare it may use all again.
//
// Why not a lower priority: on a busy machine the kernel lets a thread run for several
// milliseconds before it lets another one in, even one of a higher priority. Each step of
// a run wakes several threads, of the engine, its agent and its database. With four
// processes that spun on two CPUs a run of five steps took 25 ms instead of 3 ms, whatever
// their priority was, and 3.3 ms while they were confined to one CPU.
const (
	busyTime  = time.Second
	busyShare = 0.75
	calmShare = 0.5
)

// A confinement keeps a tree of processes to half of the CPUs while it is busy.
type confinement struct {
	since    time.Time // of the CPU time below; zero = before the first look
	cpu      time.Duration
	confined bool
}

// weigh looks at the CPU time that a tree has taken, and confines or frees it.
func (c *confinement) weigh(members []member, cpu time.Duration, now time.Time) {
	passed := now.Sub(c.since)
	if !c.since.IsZero() && passed < busyTime {
		return
	}
	first, share := c.since.IsZero(), float64(cpu-c.cpu)/float64(passed)
	c.since, c.cpu = now, cpu
	var all unix.CPUSet
	if first || unix.SchedGetaffinity(0, &all) != nil || all.Count() < 2 {
		return
	}
	half := upperHalf(&all)
	switch {
	case share > busyShare*float64(half.Count()):
		c.confined = true
		move(members, &all, &half) // again and again: a thread may have been started meanwhile
	case c.confined && share < calmShare*float64(half.Count()):
		c.confined = false
		move(members, &half, &all)
	}
}

// upperHalf returns the second half of the CPUs.
func upperHalf(all *unix.CPUSet) (half unix.CPUSet) {
	skip := (all.Count() + 1) / 2
	for cpu := range len(all) * 64 {
		if !all.IsSet(cpu) {
			continue
		}
		if skip--; skip < 0 {
			half.Set(cpu)
		}
	}
	return half
}

// move has all threads of the tree use other CPUs, but for those that chose CPUs
// themselves. It fails where a thread has ended or belongs to another user by now.
func move(members []member, from, to *unix.CPUSet) {
	for _, m := range members {
		threads, err := os.ReadDir(fmt.Sprintf("/proc/%d/task", m.pid))
		if err != nil {
			continue // it has ended
		}
		for _, t := range threads {
			id, err := strconv.Atoi(t.Name())
			if err != nil {
				continue
			}
			var now unix.CPUSet
			if unix.SchedGetaffinity(id, &now) == nil && now == *from {
				_ = unix.SchedSetaffinity(id, to)
			}
		}
	}
}
