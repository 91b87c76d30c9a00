package leash

import (
	"errors"
	"fmt"
	"os"
	"os/signal"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

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
	wordOver  = "over-" // it passed the limit whose name follows; the number is what it took
	wordErrno = "errno" // it could not be
	wordExit  = "exit"  // it has ended; the number is its wait status
	wordGone  = "gone"  // no descendant is left; the number means nothing
)

// Grace is how long a process may take to end after its host has died. SIGTERM
// announces it; then it is killed with all its descendants.
const Grace = 1500 * time.Millisecond

// A variable and not a function that main calls, so that every program which
// starts processes on a leash is also their keeper. It is set before main and
// before most other packages begin.
var _ = becomeKeeper()

// becomeKeeper does not return in a process that Start started as a keeper.
func becomeKeeper() bool {
	if len(os.Args) < 5 || os.Args[0] != keeperName || os.Getenv(keeperMark) == "" {
		return false
	}
	// The main thread, which outlives all others: the parent-death signal of the
	// process is sent when the thread ends that started it.
	k := &keeper{says: os.NewFile(saysFile, "says"), private: os.Args[1], host: os.Getppid()}
	k.limits = parseLimits(os.Args[2])
	k.run(os.Args[3], os.Args[4:])
	os.Exit(0)
	return true
}

// A keeper is the parent of one process and, in the end, of its descendants.
type keeper struct {
	says    *os.File
	private string
	limits  Limits
	host    int // process id
	pid     int
	ended   bool // the process was waited for, so that its id is free again
}

func (k *keeper) run(path string, args []string) {
	getThreads()
	goFirst()          // before the process is private: then its own files are root's
	_ = private.Keep() // it was started with the agent's environment; the agent says so if it fails
	syscall.CloseOnExec(saysFile)
	syscall.CloseOnExec(heldFile)
	children := make(chan os.Signal, 1)
	signal.Notify(children, syscall.SIGCHLD)
	// Who signals every process of a service leaves it to the agents what to do.
	// Notify and not Ignore: the process would inherit that a signal is ignored.
	signal.Notify(make(chan os.Signal, 1), syscall.SIGTERM, syscall.SIGINT, syscall.SIGHUP)
	if err := unix.Prctl(unix.PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0); err != nil {
		k.fail(err)
		return
	}
	if err := limitFiles(k.limits.Files); err != nil {
		k.fail(err)
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
		k.fail(err)
		return
	}
	k.pid = pid
	k.say(wordPid, pid)
	// The reader of what the process prints sees the end of the process, not the keeper's.
	_, _ = syscall.Close(1), syscall.Close(2)
	k.keep(children, listen())
	k.clear()
	k.say(wordGone, 0)
	if os.Getppid() != k.host && filepath.IsAbs(k.private) { // the host has died
		_ = os.RemoveAll(k.private) // an error has no reader: the host is gone
	}
}

// getThreads makes the threads that a keeper needs. Later there may be none to get, when
// the process has started so many others that the machine refuses more. The runtime ends a
// program that gets no thread.
func getThreads() {
	runtime.GOMAXPROCS(1)
	var ready, done sync.WaitGroup
	done.Add(1)
	for range 6 {
		ready.Add(1)
		go func() {
			runtime.LockOSThread()
			ready.Done()
			done.Wait()
			runtime.UnlockOSThread() // the thread stays
		}()
	}
	ready.Wait()
	done.Done()
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
	w := watch{limits: k.limits, keeper: os.Getpid()}
	next := time.NewTicker(glance)
	defer next.Stop()
	for {
		k.reap()
		if k.ended {
			return
		}
		select {
		case <-next.C:
			if over := w.glance(); over != nil {
				k.say(wordOver+over.name, int(over.taken))
				return
			}
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
	if !k.ended && hasEnded(k.pid) {
		k.killGroup()
	}
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

// hasEnded says whether a child has ended. It can still be waited for.
func hasEnded(pid int) bool {
	var info unix.Siginfo // its signal stays 0 while the child runs
	err := unix.Waitid(unix.P_PID, pid, &info, unix.WEXITED|unix.WNOHANG|unix.WNOWAIT, nil)
	return err == nil && info.Signo != 0
}

// maxBlind is how often clear looks in vain for the children that it has. A process is
// on no list for a moment while it is handed over. Where /proc is hidden, all are on no
// list for ever.
const maxBlind = 20

// clear kills every descendant until none is left. A process that may not be killed,
// because it changed its user, is left alone.
func (k *keeper) clear() {
	if !k.ended {
		k.killGroup()
	}
	blind := 0
	for pause := time.Millisecond; k.reap(); pause = min(2*pause, 100*time.Millisecond) {
		seen, killed := killBelow(os.Getpid())
		if killed == 0 {
			if blind++; seen > 0 || blind == maxBlind {
				return
			}
		}
		time.Sleep(pause) // no event tells that a child was handed over
	}
}

// killGroup kills the group of the process at once. The kernel does that in one step: no
// member can start another process meanwhile. It must be called before the process is
// waited for; then its id may be another group's.
func (k *keeper) killGroup() { _ = syscall.Kill(-k.pid, syscall.SIGKILL) }

// killBelow kills the descendants of a process. Each is stopped before its children are
// listed, and none is killed before all are stopped: a program that starts copies of
// itself without end would start them faster than they are killed.
func killBelow(root int) (seen, killed int) {
	stopped := map[int]bool{}
	for fresh := true; fresh; {
		fresh = false
		next, _ := childrenOf(root)
		for len(next) > 0 {
			pid := next[len(next)-1]
			next = next[:len(next)-1]
			if !stopped[pid] {
				seen++
				if syscall.Kill(pid, syscall.SIGSTOP) != nil {
					continue // it has ended, or belongs to another user
				}
				stopped[pid], fresh = true, true
			}
			children, _ := childrenOf(pid)
			next = append(next, children...)
		}
	}
	for pid := range stopped {
		if syscall.Kill(pid, syscall.SIGKILL) == nil {
			killed++
		}
	}
	return seen, killed
}

// fail tells the host that the process could not be started.
func (k *keeper) fail(err error) {
	errno := syscall.EINVAL // a zero byte in a text
	errors.As(err, &errno)
	k.say(wordErrno, int(errno))
}

// say tells the host something. It fails only where the host is gone.
func (k *keeper) say(word string, number int) { _, _ = fmt.Fprintln(k.says, word, number) }
