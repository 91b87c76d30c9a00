package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"runtime/pprof"
	"strconv"
	"strings"
	"time"
)

// jiffy is the unit of the times in /proc/PID/stat. The unit is the same on every Linux on
// which Go runs.
const jiffy = 10 * time.Millisecond

// A usage holds what the measured processes have used since their start: CPU time, bytes of
// the write-ahead log, and commits. The processes are the engine, its agent and its PostgreSQL
// server.
type usage struct {
	// CPU time of the engine, of its agent and of the PostgreSQL server. The field `engine`
	// includes the benchmark, which runs in the same process as the engine.
	engine, agent, server time.Duration
	log                   float64 // bytes that the server wrote to its write-ahead log
	// Number of transactions that wrote something, including the ticks of the engine. Without
	// a PostgreSQL server: number of commits of transitions.
	commits float64
}

func (u usage) minus(v usage) usage {
	return usage{
		engine: u.engine - v.engine, agent: u.agent - v.agent, server: u.server - v.server,
		log: u.log - v.log, commits: u.commits - v.commits,
	}
}

var errElsewhere = errors.New("the server's processes cannot be seen")

// postmaster returns the process id of the server's main process. It returns errElsewhere if
// it cannot find the process id, for example because the server runs on another machine.
func (d *database) postmaster(ctx context.Context) (int, error) {
	if d.pid != 0 {
		return d.pid, nil
	}
	var file string
	if err := d.db.QueryRowContext(ctx, `SELECT pg_read_file('postmaster.pid')`).Scan(&file); err != nil {
		// The statement fails, for example, if the user is not a superuser.
		return 0, fmt.Errorf("%w: %w", errElsewhere, err)
	}
	first, _, _ := strings.Cut(file, "\n")
	pid, err := strconv.Atoi(first)
	if err != nil {
		return 0, fmt.Errorf("%w: %w", errElsewhere, err)
	}
	d.pid = pid
	return pid, nil
}

// serverCPU returns the CPU time that all processes of the server have used.
func (d *database) serverCPU(ctx context.Context) (time.Duration, error) {
	postmaster, err := d.postmaster(ctx)
	if err != nil {
		return 0, err
	}
	// looks is the largest number of tries to read a correct sum. Each try reads the CPU time of
	// the postmaster, then the CPU times of its child processes, and then the CPU time of the
	// postmaster again. The CPU time of the postmaster includes the times of its child processes
	// that have ended. So if it is the same in both reads, no child process ended during the try,
	// and the sum contains the times of all child processes.
	const looks = 100
	for range looks {
		own, _, err := processCPU(postmaster, true)
		if err != nil {
			return 0, err
		}
		others, err := childrenCPU(postmaster)
		if err != nil {
			return 0, err
		}
		if again, _, err := processCPU(postmaster, true); err == nil && again == own {
			return own + others, nil
		}
	}
	return 0, errors.New("the server's processes come and go too fast to be counted")
}

// childrenCPU adds the CPU times of all running child processes of one process, and returns
// the sum. The parameter `of` is the id of that one process.
func childrenCPU(of int) (sum time.Duration, err error) {
	all, err := filepath.Glob("/proc/[0-9]*")
	if err != nil {
		return 0, err
	}
	for _, dir := range all {
		pid, err := strconv.Atoi(filepath.Base(dir))
		if err != nil {
			continue
		}
		if used, parent, err := processCPU(pid, false); err == nil && parent == of {
			sum += used
		}
	}
	return sum, nil
}

// cpu returns the CPU time that this process, its ended children and the server have used
// since their start. It returns false if the CPU time is not known.
func (d *database) cpu(ctx context.Context) (time.Duration, bool) {
	own, _, err := processCPU(os.Getpid(), true)
	if err != nil {
		return 0, false
	}
	server, err := d.serverCPU(ctx)
	return own + server, err == nil
}

// processCPU returns the CPU time of a process and the process id of its parent. If `children` is
// true, the time includes the child processes that the process has waited for.
func processCPU(pid int, children bool) (used time.Duration, parent int, err error) {
	b, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	if err != nil {
		return 0, 0, err
	}
	// Skip "PID (NAME) ". This assumes that NAME does not contain ") ".
	_, rest, _ := strings.Cut(string(b), ") ")
	fields := strings.Fields(rest)
	if len(fields) < 15 {
		return 0, 0, fmt.Errorf("/proc/%d/stat has %d fields", pid, len(fields))
	}
	n := 2 // number of fields to add: user time and system time
	if children {
		n = 4
	}
	for _, f := range fields[11 : 11+n] {
		ticks, err := strconv.Atoi(f)
		if err != nil {
			return 0, 0, err
		}
		used += time.Duration(ticks) * jiffy
	}
	parent, err = strconv.Atoi(fields[1])
	return used, parent, err
}

// A profiler writes one CPU profile of this process, which includes the engine. It profiles
// only the first measurement that calls the method `during`.
type profiler struct {
	path string // file for the profile; "" = no profile is wanted, or it was already written
}

// during executes fn and returns the error of fn. If the field `path` is not "", during also writes
// a CPU profile of this call of fn.
func (p *profiler) during(fn func() error) (err error) {
	if p.path == "" {
		return fn()
	}
	f, err := os.Create(p.path)
	if err != nil {
		return fmt.Errorf("write a profile: %w", err)
	}
	p.path = ""
	if err := pprof.StartCPUProfile(f); err != nil {
		return errors.Join(fmt.Errorf("write a profile: %w", err), f.Close())
	}
	defer func() {
		pprof.StopCPUProfile()
		err = errors.Join(err, f.Close())
	}()
	return fn()
}
