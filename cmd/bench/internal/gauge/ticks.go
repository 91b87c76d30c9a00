// Package gauge measures what the processes of the benchmark do: the statements that an engine
// sends to its database, and how busy the CPUs of the machine are.
//
// In: a connection of an engine, and /proc/stat. Out: numbers of statements, and shares of CPU
// time.
package gauge

import (
	"fmt"
	"os"
	"strconv"
	"strings"
)

// Ticks holds the time that all CPUs of the machine together have spent since the start of the
// machine: all time, idle time, and time that the host of this virtual machine gave to other
// virtual machines. The unit is the same as in /proc/stat.
type Ticks struct{ all, idle, stolen float64 }

// Indexes of fields in the first line of /proc/stat. The field after "cpu" has the index 0.
const (
	statIdle   = 3
	statWait   = 4 // index of the idle time in which a process waited for a disk
	statStolen = 7 // index of the time that the host gave to other virtual machines
	// Index of the first field that is not added to the sum, because earlier fields include its
	// time.
	statGuest = 8
)

// ReadTicks reads from /proc/stat how long the CPUs have been used and idle until now.
func ReadTicks() (m Ticks, err error) {
	data, err := os.ReadFile("/proc/stat")
	if err != nil {
		return m, err
	}
	return parseTicks(string(data))
}

func parseTicks(stat string) (m Ticks, err error) {
	line, _, _ := strings.Cut(stat, "\n")
	fields := strings.Fields(line)
	if len(fields) < 1+statGuest || fields[0] != "cpu" {
		return m, fmt.Errorf("/proc/stat begins with %q", line)
	}
	for i, f := range fields[1 : 1+statGuest] {
		n, err := strconv.ParseFloat(f, 64)
		if err != nil {
			return m, fmt.Errorf("/proc/stat begins with %q: %w", line, err)
		}
		m.all += n
		switch i {
		case statIdle, statWait:
			m.idle += n
		case statStolen:
			m.stolen = n
		}
	}
	return m, nil
}

// Since returns how the CPUs were used between an earlier measurement and m. The result `idle`
// is the percentage of the CPU time that was idle. The result `stolen` is the percentage that
// the host gave to other virtual machines.
func (m Ticks) Since(before Ticks) (idle, stolen float64) {
	all := m.all - before.all
	if all <= 0 {
		return 0, 0
	}
	return 100 * (m.idle - before.idle) / all, 100 * (m.stolen - before.stolen) / all
}
