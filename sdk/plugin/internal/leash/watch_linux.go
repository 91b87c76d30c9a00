package leash

import (
	"math"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

// The pace of a watch. A look reads some twenty files, a glance reads none.
const (
	glance    = 50 * time.Millisecond // between two glances at the machine
	lookPause = time.Second           // between two looks at the tree
	crowd     = 100                   // a look is due when the machine has so many threads more
)

// A watch looks at what a tree of processes takes.
type watch struct {
	limits  Limits
	keeper  int       // process id whose descendants are the tree
	due     time.Time // of the next look
	last    machine   // at the last look
	suspect bool      // the tree had too much memory at the last look
	cpus    confinement
}

// A machine is what all processes together take.
type machine struct {
	threads uint16 // the kernel counts no further
	free    int64  // bytes
}

func theMachine() (m machine) {
	var info unix.Sysinfo_t
	if unix.Sysinfo(&info) == nil {
		m = machine{info.Procs, int64(info.Freeram) * int64(info.Unit)}
	}
	return m
}

// glance looks at the tree if that is due: after lookPause, or where the machine has many
// threads more or much less memory than at the last look. It returns the limit that the
// tree has passed; nil if there is none.
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
	e := w.look(now)
	w.last, w.due = theMachine(), now.Add(lookPause)
	if w.suspect {
		w.due = now
	}
	return e
}

// look counts what the tree takes. Too much memory counts if the next look sees it, too:
// a process that has just been forked shares its memory with its parent for a moment.
func (w *watch) look(now time.Time) *excess {
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

// limitFiles bounds the open files of this process and of what it starts.
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
