package leash

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"time"
)

// A member is one descendant of a keeper: its process id, and the number of its threads.
type member struct{ pid, threads int }

// tree returns the descendants of the process with the id root, and the total number of their
// threads. It stops the search once the number of threads is greater than the parameter `most`.
func tree(root, most int) (members []member, threads int) {
	next, _ := childrenOf(root)
	for len(next) > 0 && threads <= most {
		pid := next[len(next)-1]
		children, n := childrenOf(pid)
		members = append(members, member{pid, n})
		next, threads = append(next[:len(next)-1], children...), threads+n
	}
	return members, threads
}

// memory returns the memory of a process in bytes, without the pages of files; 0 if the
// process has ended.
func (m member) memory() (sum int64) {
	status, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", m.pid))
	if err != nil {
		return 0
	}
	for _, name := range []string{"RssAnon", "RssShmem", "VmSwap"} {
		sum += line(status, name) << 10
	}
	return sum
}

// cpu returns the CPU time of a process and of its ended children; 0 if the process has ended.
func (m member) cpu() time.Duration {
	stat, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", m.pid))
	if err != nil {
		return 0
	}
	return cpuOf(stat)
}

// line returns a number from /proc/PID/status, a file with lines such as "VmSwap: 12 kB". The
// parameter `status` is the content of the file, and the parameter `name` is the word before the
// colon. The function `line` returns 0 if there is no such line: the file of an ended process has
// no lines about memory.
func line(status []byte, name string) int64 {
	_, rest, found := bytes.Cut(status, []byte("\n"+name+":"))
	if !found {
		return 0
	}
	fields := bytes.Fields(rest[:min(len(rest), 64)])
	if len(fields) == 0 {
		return 0
	}
	n, err := strconv.ParseInt(string(fields[0]), 10, 64)
	if err != nil {
		return 0
	}
	return n
}

// clockTick is the unit of times in /proc/PID/stat. It is the same on all architectures
// that Go supports.
const clockTick = 10 * time.Millisecond

// cpuOf returns the CPU time in /proc/PID/stat, the sum of its fields utime, stime, cutime and
// cstime. The parameter `stat` is the content of this file. If it is incomplete, cpuOf returns
// 0.
func cpuOf(stat []byte) (sum time.Duration) {
	fields := afterName(stat)
	if len(fields) < 15 {
		return 0
	}
	for _, f := range fields[11:15] {
		if n, err := strconv.ParseInt(string(f), 10, 64); err == nil {
			sum += time.Duration(n) * clockTick
		}
	}
	return sum
}

// afterName returns the third and all later fields of /proc/PID/stat. The file begins with
// "PID (NAME) STATE PPID …". NAME may contain any character, so afterName searches the last ")".
func afterName(stat []byte) [][]byte {
	return bytes.Fields(stat[bytes.LastIndexByte(stat, ')')+1:])
}

// childrenOf returns the process ids of the children of a process, and the number of threads
// of that process. The children include ended processes that still are in the process table.
func childrenOf(parent int) (pids []int, threads int) {
	tasks, err := os.ReadDir(fmt.Sprintf("/proc/%d/task", parent))
	if err != nil {
		return nil, 0 // the process has ended
	}
	if !listsChildren {
		return searchChildren(parent), len(tasks)
	}
	for _, t := range tasks {
		list, err := os.ReadFile(fmt.Sprintf("/proc/%d/task/%s/children", parent, t.Name()))
		if err != nil {
			continue // the thread has ended
		}
		for _, f := range bytes.Fields(list) {
			if pid, err := strconv.Atoi(string(f)); err == nil {
				pids = append(pids, pid)
			}
		}
	}
	return pids, len(tasks)
}

// listsChildren reports whether the kernel can list the children of a thread.
var listsChildren = func() bool {
	_, err := os.Stat("/proc/thread-self/children")
	return err == nil
}()

// searchChildren returns the process ids of the children of a process. It reads the parent of
// every process of the machine, so it is slow.
func searchChildren(parent int) (pids []int) {
	stats, _ := filepath.Glob("/proc/[0-9]*/stat") // Glob fails only for a wrong pattern
	for _, name := range stats {
		data, err := os.ReadFile(name)
		if err != nil {
			continue // the process has ended
		}
		fields := afterName(data)
		if len(fields) < 2 || string(fields[1]) != strconv.Itoa(parent) {
			continue
		}
		if pid, err := strconv.Atoi(filepath.Base(filepath.Dir(name))); err == nil {
			pids = append(pids, pid)
		}
	}
	return pids
}
