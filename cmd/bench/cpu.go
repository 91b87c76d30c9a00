package main

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"time"
)

// tick is the unit of /proc/PID/stat, 1/100 s on every Linux that Go runs on.
const tick = 10 * time.Millisecond

// cpu returns the CPU time that this process, the children it has waited for
// and the server have used so far. It is false where /proc does not tell, or
// the server is on another machine.
func (d *database) cpu(ctx context.Context) (time.Duration, bool) {
	var file string
	if err := d.db.QueryRowContext(ctx, `SELECT pg_read_file('postmaster.pid')`).Scan(&file); err != nil {
		return 0, false // not a superuser
	}
	first, _, _ := strings.Cut(file, "\n")
	postmaster, err := strconv.Atoi(first)
	if err != nil {
		return 0, false
	}
	sum, ok := time.Duration(0), true
	for _, pid := range []int{os.Getpid(), postmaster} {
		used, _, err := processCPU(pid, true)
		sum, ok = sum+used, ok && err == nil
	}
	all, err := filepath.Glob("/proc/[0-9]*")
	if err != nil || !ok {
		return 0, false
	}
	for _, dir := range all {
		pid, err := strconv.Atoi(filepath.Base(dir))
		if err != nil {
			continue
		}
		if used, parent, err := processCPU(pid, false); err == nil && parent == postmaster {
			sum += used
		}
	}
	return sum, true
}

// processCPU returns what a process has used, with the children it has waited
// for if they count, and its parent.
func processCPU(pid int, children bool) (used time.Duration, parent int, err error) {
	b, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	if err != nil {
		return 0, 0, err
	}
	_, rest, _ := strings.Cut(string(b), ") ") // a name may hold anything but that
	fields := strings.Fields(rest)
	if len(fields) < 15 {
		return 0, 0, fmt.Errorf("/proc/%d/stat has %d fields", pid, len(fields))
	}
	n := 2 // user and system
	if children {
		n = 4
	}
	for _, f := range fields[11 : 11+n] {
		ticks, err := strconv.Atoi(f)
		if err != nil {
			return 0, 0, err
		}
		used += time.Duration(ticks) * tick
	}
	parent, err = strconv.Atoi(fields[1])
	return used, parent, err
}
