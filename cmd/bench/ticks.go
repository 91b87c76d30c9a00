package main

import (
	"fmt"
	"os"
	"strconv"
	"strings"
)

// ticks hold the time that all CPUs of the machine together have spent since its start, in
// ticks of /proc/stat.
type ticks struct{ all, idle, stolen float64 }

// Indexes of the fields after "cpu" in /proc/stat.
const (
	statIdle   = 3
	statWait   = 4 // time of waiting for a disk, which counts as idle, too
	statStolen = 7 // time that the host took for its other guests
	statGuest  = 8 // this field and the later ones are already included in earlier ones
)

// readTicks reads the ticks from /proc/stat.
func readTicks() (m ticks, err error) {
	data, err := os.ReadFile("/proc/stat")
	if err != nil {
		return m, err
	}
	return parseTicks(string(data))
}

func parseTicks(stat string) (m ticks, err error) {
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

// since compares m with an earlier measurement. It returns the percentage of the CPU time that
// was idle, and the percentage that the host gave to its other guests.
func (m ticks) since(before ticks) (idle, stolen float64) {
	all := m.all - before.all
	if all <= 0 {
		return 0, 0
	}
	return 100 * (m.idle - before.idle) / all, 100 * (m.stolen - before.stolen) / all
}
