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

// jiffy is the unit of /proc/PID/stat, 1/100 s on every Linux that Go runs on.
const jiffy = 10 * time.Millisecond

// A usage is what has been used so far.
type usage struct {
	engine, agent, server time.Duration // CPU time; of the engine: with who drives it
	log                   float64       // bytes that the server wrote to its log
	commits               float64       // transactions that wrote, ticks included; where the store has no server, only those of transitions
}

func (u usage) minus(v usage) usage {
	return usage{
		engine: u.engine - v.engine, agent: u.agent - v.agent, server: u.server - v.server,
		log: u.log - v.log, commits: u.commits - v.commits,
	}
}

// usage returns what the engine, its agent and its server have used.
func (r *running) usage(ctx context.Context) (u usage, err error) {
	if u.engine, _, err = processCPU(os.Getpid(), false); err != nil {
		return u, err
	}
	u.agent = r.procs.cpu()
	u.commits = float64(r.store.commits.Load())
	if r.d == nil {
		return u, nil
	}
	// What was committed is what has a transaction id: reading takes none.
	err = r.d.db.QueryRowContext(ctx, `SELECT pg_wal_lsn_diff(pg_current_wal_insert_lsn(), '0/0')::float8, txid_snapshot_xmax(txid_current_snapshot())::float8`).Scan(&u.log, &u.commits)
	if err == nil {
		u.server, err = r.d.serverCPU(ctx)
	}
	return u, err
}

var errElsewhere = errors.New("the server's processes cannot be seen")

// postmaster returns the pid of the server, if it stands on this machine.
func (d *database) postmaster(ctx context.Context) (int, error) {
	if d.pid != 0 {
		return d.pid, nil
	}
	var file string
	if err := d.db.QueryRowContext(ctx, `SELECT pg_read_file('postmaster.pid')`).Scan(&file); err != nil {
		return 0, fmt.Errorf("%w: %w", errElsewhere, err) // not a superuser
	}
	first, _, _ := strings.Cut(file, "\n")
	pid, err := strconv.Atoi(first)
	if err != nil {
		return 0, fmt.Errorf("%w: %w", errElsewhere, err)
	}
	d.pid = pid
	return pid, nil
}

// serverCPU returns what all processes of the server have used.
func (d *database) serverCPU(ctx context.Context) (time.Duration, error) {
	postmaster, err := d.postmaster(ctx)
	if err != nil {
		return 0, err
	}
	// What ends between two looks is in neither: the server's own, with those that
	// have ended, must not change while the others are looked at.
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

// childrenCPU returns what the processes of a parent that have not ended have used.
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

// cpu returns the CPU time that this process, the children it has waited for
// and the server have used so far; false where that cannot be told.
func (d *database) cpu(ctx context.Context) (time.Duration, bool) {
	own, _, err := processCPU(os.Getpid(), true)
	if err != nil {
		return 0, false
	}
	server, err := d.serverCPU(ctx)
	return own + server, err == nil
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
		used += time.Duration(ticks) * jiffy
	}
	parent, err = strconv.Atoi(fields[1])
	return used, parent, err
}

// A profiler writes one CPU profile of this process, in which the engine works:
// of the first thing that is worth one.
type profiler struct {
	path string // "" = none
}

// during calls fn under the profile, unless it has been written before.
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
