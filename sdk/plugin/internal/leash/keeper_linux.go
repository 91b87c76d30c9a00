package leash

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"os/signal"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"time"

	"github.com/saga-engine/engine/sdk/private"
)

// How the host and the keeper recognise each other.
const (
	keeperName = "engine-leash"
	keeperMark = "ENGINE_LEASH" // variable of the keeper's environment; never passed on
	saysFile   = 3              // descriptor on which the keeper speaks
	heldFile   = 4              // descriptor whose end says that the host is gone
	runFile    = 5              // descriptor of the file to run, where there is one
	killNow    = 'k'            // sent by the host through heldFile

	wordPid   = "pid"   // the process was started
	wordErrno = "errno" // it could not be
	wordExit  = "exit"  // it has ended; the number is its wait status
	wordGone  = "gone"  // no descendant is left; the number means nothing
)

// Grace is how long a process may take to end after its host has died. SIGTERM
// announces it; then it is killed with all its descendants.
const Grace = 1500 * time.Millisecond

// prSetChildSubreaper is PR_SET_CHILD_SUBREAPER of prctl(2).
const prSetChildSubreaper = 36

// A variable and not a function that main calls, so that every program which
// starts processes on a leash is also their keeper. It is set before main and
// before most other packages begin.
var _ = becomeKeeper()

// becomeKeeper does not return in a process that Start started as a keeper.
func becomeKeeper() bool {
	if len(os.Args) < 4 || os.Args[0] != keeperName || os.Getenv(keeperMark) == "" {
		return false
	}
	// The main thread, which outlives all others: the parent-death signal of the
	// process is sent when the thread ends that started it.
	k := &keeper{says: os.NewFile(saysFile, "says"), private: os.Args[1], host: os.Getppid()}
	k.run(os.Args[2], os.Args[3:])
	os.Exit(0)
	return true
}

// A keeper is the parent of one process and, in the end, of its descendants.
type keeper struct {
	says    *os.File
	private string
	host    int // process id
	pid     int
	ended   bool // the process was waited for, so that its id is free again
}

func (k *keeper) run(path string, args []string) {
	goFirst()          // before the process is private: then its own files are root's
	_ = private.Keep() // it was started with the agent's environment; the agent says so if it fails
	syscall.CloseOnExec(saysFile)
	syscall.CloseOnExec(heldFile)
	children := make(chan os.Signal, 1)
	signal.Notify(children, syscall.SIGCHLD)
	// Who signals every process of a service leaves it to the agents what to do.
	// Notify and not Ignore: the process would inherit that a signal is ignored.
	signal.Notify(make(chan os.Signal, 1), syscall.SIGTERM, syscall.SIGINT, syscall.SIGHUP)
	if _, _, errno := syscall.RawSyscall(syscall.SYS_PRCTL, prSetChildSubreaper, 1, 0); errno != 0 {
		k.say(wordErrno, int(errno))
		return
	}
	files := []uintptr{0, 1, 2}
	if path == runPath {
		// The process keeps the descriptor: the interpreter of a script opens it.
		files = append(files, ^uintptr(0), ^uintptr(0), runFile)
	}
	pid, err := syscall.ForkExec(path, args, &syscall.ProcAttr{
		Env: environment(), Files: files,
		Sys: &syscall.SysProcAttr{Setpgid: true, Pdeathsig: syscall.SIGKILL},
	})
	if err != nil {
		errno := syscall.EINVAL // a zero byte in a text
		errors.As(err, &errno)
		k.say(wordErrno, int(errno))
		return
	}
	k.pid = pid
	k.say(wordPid, pid)
	// Whoever reads what the process prints sees its end, and not the keeper's.
	_, _ = syscall.Close(1), syscall.Close(2)
	k.keep(children, listen())
	k.clear()
	k.say(wordGone, 0)
	if os.Getppid() != k.host && filepath.IsAbs(k.private) { // the host has died
		_ = os.RemoveAll(k.private) // nobody is left who could hear of an error
	}
}

// memoryHandicap is by how much an agent's score is above its engine's where the kernel
// looks for a process to end because memory has run out. The scale ends at 1000.
const memoryHandicap = 300

// goFirst has the kernel end the agent and what it starts before the engine. An agent
// that takes all memory then costs its own calls, and not those of all agents. Where the
// score cannot be set, nothing changes.
func goFirst() {
	const file = "/proc/self/oom_score_adj"
	text, err := os.ReadFile(file)
	if err != nil {
		return
	}
	if score, err := strconv.Atoi(strings.TrimSpace(string(text))); err == nil {
		_ = os.WriteFile(file, []byte(strconv.Itoa(min(1000, score+memoryHandicap))), 0)
	}
}

// environment is the keeper's own without the mark.
func environment() []string {
	var env []string
	for _, v := range os.Environ() {
		if v != keeperMark+"=1" {
			env = append(env, v)
		}
	}
	return env
}

// listen returns a channel of what the host sends. It is closed when the host is
// gone.
func listen() <-chan byte {
	words := make(chan byte)
	held := os.NewFile(heldFile, "held")
	go func() {
		defer close(words)
		for b := make([]byte, 1); ; {
			if n, err := held.Read(b); n == 0 || err != nil {
				return
			}
			words <- b[0]
		}
	}()
	return words
}

// keep returns when the process has ended, or must.
func (k *keeper) keep(children <-chan os.Signal, host <-chan byte) {
	var patience <-chan time.Time
	for {
		k.reap()
		if k.ended {
			return
		}
		select {
		case <-children:
		case _, alive := <-host:
			if alive { // killNow
				return
			}
			host = nil
			_ = syscall.Kill(k.pid, syscall.SIGTERM)
			patience = time.After(Grace)
		case <-patience:
			return
		}
	}
}

// reap collects every child that has ended, and reports the end of the process.
// left says whether there are children.
func (k *keeper) reap() (left bool) {
	for {
		var status syscall.WaitStatus
		pid, err := syscall.Wait4(-1, &status, syscall.WNOHANG, nil)
		switch {
		case errors.Is(err, syscall.EINTR):
			continue
		case err != nil:
			return false // ECHILD
		case pid == 0:
			return true
		case pid == k.pid && !k.ended:
			k.ended = true
			k.say(wordExit, int(status))
		}
	}
}

// clear kills every child until none is left. Children of a killed child become
// the keeper's own, so that all descendants have their turn. A child that may not
// be killed, because it changed its user, is left alone.
func (k *keeper) clear() {
	for pause := time.Millisecond; k.reap(); pause = min(2*pause, 100*time.Millisecond) {
		killed := 0
		for _, pid := range childrenOf(os.Getpid()) {
			if syscall.Kill(pid, syscall.SIGKILL) == nil {
				killed++
			}
		}
		if killed == 0 {
			return
		}
		time.Sleep(pause) // no event tells that a child was handed over
	}
}

// childrenOf lists the children of a process, those that have ended included.
func childrenOf(parent int) []int {
	stats, _ := filepath.Glob("/proc/[0-9]*/stat") // no error but for a bad pattern
	var pids []int
	for _, name := range stats {
		data, err := os.ReadFile(name)
		if err != nil {
			continue // it has ended
		}
		// "PID (NAME) STATE PPID …", and a name may hold anything.
		fields := bytes.Fields(data[bytes.LastIndexByte(data, ')')+1:])
		if len(fields) < 2 || string(fields[1]) != strconv.Itoa(parent) {
			continue
		}
		if pid, err := strconv.Atoi(filepath.Base(filepath.Dir(name))); err == nil {
			pids = append(pids, pid)
		}
	}
	return pids
}

// say tells the host something. It fails only where the host is gone.
func (k *keeper) say(word string, number int) { _, _ = fmt.Fprintln(k.says, word, number) }
