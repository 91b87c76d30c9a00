package leash

import (
	"fmt"
	"os"
	"strconv"
	"time"

	"golang.org/x/sys/unix"
)

// A tree of processes (an agent and its descendants) must not keep all CPUs busy. After each
// busyTime, the keeper divides the CPU time that the tree has used by the CPU time that half of
// the CPUs can give. If this share is greater than busyShare, the keeper confines the tree to
// half of the CPUs. If the share is smaller than calmShare, the tree may use all CPUs again.
//
// A lower priority would not be enough. On a busy machine the kernel lets a thread run for several
// milliseconds before another thread runs, even if the thread that waits has a higher priority.
// Each step of a run wakes several threads: of the engine, its agent and its database. With four
// processes in endless loops on two CPUs, a run of five steps took 25 ms instead of 3 ms. A lower
// priority of the four processes did not change that. The run took 3.3 ms while the four processes
// were confined to one CPU.
const (
	busyTime  = time.Second
	busyShare = 0.75
	calmShare = 0.5
)

// A confinement limits a tree of processes to half of the CPUs while the tree is busy.
type confinement struct {
	since    time.Time     // time of the last measurement of the CPU time; zero = not measured yet
	cpu      time.Duration // CPU time of the tree at the last measurement
	confined bool          // the tree may use only half of the CPUs
}

// weigh computes how much CPU time the tree has used since the last measurement. If the share of
// the tree is greater than busyShare, weigh confines the tree to half of the CPUs. If the share is
// smaller than calmShare, weigh lets the tree use all CPUs again. If the keeper may use only one
// CPU, weigh changes nothing. The parameter `cpu` is the CPU time that the tree has used until now.
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

// upperHalf returns the half of the CPUs with the higher numbers. If the number of CPUs is odd, it
// returns the smaller half.
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

// move changes the set of CPUs on which the threads of the given processes may run. The parameter
// `from` is the old set, and the parameter `to` is the new set. The function `move` does not change
// a thread that has chosen other CPUs itself. It ignores errors, because a thread may have ended
// or may belong to another user.
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
