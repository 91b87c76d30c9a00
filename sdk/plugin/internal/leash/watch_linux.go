package leash

import (
	"math"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

// These constants decide when a watch measures. The method `measure` measures the tree and reads
// approximately twenty files. The method `glance` measures the machine and reads no file.
const (
	glance    = 50 * time.Millisecond // time between two measurements of the machine
	lookPause = time.Second           // time between two measurements of the tree
	crowd     = 100                   // number of new threads after which the tree is measured at once
)

// A watch measures the memory, threads and CPU time of a tree of processes, and checks the
// limits.
type watch struct {
	limits Limits
	keeper int       // process id of the keeper; the tree consists of the keeper's descendants
	due    time.Time // time of the next measurement of the tree
	// Values of the machine since the last measurement of the tree: the smallest number of threads,
	// and the largest free memory.
	last    machine
	suspect bool // the tree used too much memory at the last measurement
	cpus    confinement
}

// A machine holds values about the whole machine.
type machine struct {
	threads uint16 // number of threads; the kernel's counter has 16 bits
	free    int64  // free memory of the machine, in bytes
}

func theMachine() (m machine) {
	var info unix.Sysinfo_t
	if unix.Sysinfo(&info) == nil {
		m = machine{info.Procs, int64(info.Freeram) * int64(info.Unit)}
	}
	return m
}

// glance measures the machine. It also measures the tree in four cases: lookPause has passed since
// the last measurement of the tree; that measurement found too much memory; the machine has many
// more threads than in the field `last`; the machine has much less free memory than in the field
// `last`. If the tree has exceeded a limit, glance returns the excess; otherwise nil.
func (w *watch) glance() *excess {
	now, m := time.Now(), theMachine()
	more := int16(m.threads - w.last.threads)
	if now.Before(w.due) && more < crowd && (w.limits.Memory <= 0 || w.last.free-m.free < w.limits.Memory/4) {
		if more < 0 {
			w.last.threads = m.threads
		}
		w.last.free = max(w.last.free, m.free)
		return nil
	}
	e := w.measure(now)
	w.last, w.due = theMachine(), now.Add(lookPause)
	if w.suspect {
		w.due = now
	}
	return e
}

// measure measures the tree: it adds up the values of all processes of the tree. It returns the
// excess if the tree has exceeded a limit; otherwise nil. If the tree uses too much memory, measure
// returns the excess only if the measurement before this one has found too much memory, too. The
// reason: for a moment after a fork, the new process shares its memory with its parent, and measure
// counts this memory twice.
func (w *watch) measure(now time.Time) *excess {
	most := w.limits.Threads
	if most <= 0 {
		most = math.MaxInt
	}
	members, threads := tree(w.keeper, most)
	if threads > most {
		return &excess{nameThreads, int64(threads), int64(most)}
	}
	var memory int64
	var cpu time.Duration
	for _, m := range members {
		memory, cpu = memory+m.memory(), cpu+m.cpu()
	}
	w.cpus.weigh(members, cpu, now)
	before := w.suspect
	w.suspect = w.limits.Memory > 0 && memory > w.limits.Memory
	if before && w.suspect {
		return &excess{nameMemory, memory, w.limits.Memory}
	}
	return nil
}

// limitFiles limits the open files of this process and of the processes that it starts.
func limitFiles(most int) error {
	if most <= 0 {
		return nil
	}
	var now syscall.Rlimit
	if err := syscall.Getrlimit(syscall.RLIMIT_NOFILE, &now); err != nil {
		return err
	}
	bound := min(now.Max, uint64(most))
	return syscall.Setrlimit(syscall.RLIMIT_NOFILE, &syscall.Rlimit{Cur: bound, Max: bound})
}
