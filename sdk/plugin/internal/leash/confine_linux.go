package leash

import (
	"fmt"
	"os"
	"strconv"
	"time"

	"golang.org/x/sys/unix"
)

// A tree of processes must not keep all CPUs busy. If it uses more than busyShare of the
// time of half of the CPUs during busyTime, it is confined to that half. Once it uses less
// than calmShare of that time, it may use all CPUs again.
//
// A lower priority would not be enough. On a busy machine the kernel lets a thread run for
// several milliseconds before another one runs, even if that one has a higher priority.
// Each step of a run wakes several threads: of the engine, its agent and its database. With
// four processes in endless loops on two CPUs, a run of five steps took 25 ms instead of 3
// ms, whatever their priority was. It took 3.3 ms while they were confined to one CPU.
const (
	busyTime  = time.Second
	busyShare = 0.75
	calmShare = 0.5
)

// A confinement limits a tree of processes to half of the CPUs while the tree is busy.
type confinement struct {
	since    time.Time // time of the last measurement of cpu; zero = not measured yet
	cpu      time.Duration
	confined bool
}

// weigh compares the CPU time of the tree with that of the last measurement, and confines or
// frees the tree.
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
		move(members, &all, &half) // repeated each time, because new threads may have been started
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

// move lets the threads of the tree run on the given new CPUs instead of the given old
// ones. It leaves out threads that have chosen other CPUs themselves. Errors are ignored:
// a thread may have ended or may belong to another user.
func move(members []member, from, to *unix.CPUSet) {
	for _, m := range members {
		threads, err := os.ReadDir(fmt.Sprintf("/proc/%d/task", m.pid))
		if err != nil {
			continue // the process has ended
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
