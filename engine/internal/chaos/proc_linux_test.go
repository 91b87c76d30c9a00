package chaos

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
)

// stopped reports whether a process stands still.
func stopped(pid int) bool { return stateOf(pid) == "T" }

// gone reports whether a process has ended, a zombie included.
func gone(pid int) bool { s := stateOf(pid); return s == "" || s == "Z" || s == "X" }

// stateOf returns the state letter of a process; "" = there is none.
func stateOf(pid int) string {
	fields := statOf(pid)
	if len(fields) < 2 {
		return ""
	}
	return fields[0]
}

// statOf returns the fields of a process's stat from its state on.
func statOf(pid int) []string {
	data, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	if err != nil {
		return nil
	}
	return strings.Fields(string(data[bytes.LastIndexByte(data, ')')+1:]))
}

// descendants returns the processes below pid.
func descendants(pid int) []int {
	dirs, _ := filepath.Glob("/proc/[0-9]*") // no error but for a bad pattern
	parent := map[int]int{}
	for _, d := range dirs {
		p, err := strconv.Atoi(filepath.Base(d))
		if err != nil {
			continue
		}
		if f := statOf(p); len(f) > 1 {
			parent[p], _ = strconv.Atoi(f[1])
		}
	}
	var all []int
	for p := range parent {
		for q := p; q > 1; q = parent[q] {
			if parent[q] == pid {
				all = append(all, p)
				break
			}
		}
	}
	return all
}
