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

// How the host and the keeper communicate.
const (
	keeperName = "engine-leash"
	keeperMark = "ENGINE_LEASH" // variable in the keeper's environment; never passed on
	saysFile   = 3              // descriptor to which the keeper writes
	heldFile   = 4              // descriptor that the keeper reads; end of file means that the host is gone
	runFile    = 5              // descriptor of the file to run, if there is one
	killNow    = 'k'            // byte with which the host asks the keeper to kill the process at once

	// Words that the keeper writes to the host, each with a number.
	wordPid   = "pid"   // the process was started; the number is its process id
	wordOver  = "over-" // the tree exceeded the limit whose name follows; the number is what it used
	wordErrno = "errno" // the process could not be started; the number is the system's error number
	wordExit  = "exit"  // the process has ended; the number is its wait status
	wordGone  = "gone"  // no descendant is left; the number has no meaning
)

// Grace is how long a process may take to end after its host has died. First it gets
// SIGTERM. After Grace it is killed with all its descendants.
const Grace = 1500 * time.Millisecond

// This variable calls becomeKeeper before main begins, and before most other packages are
// initialized. So every program that starts processes with this package can also be their
// keeper.
var _ = becomeKeeper()

// becomeKeeper does the work of a keeper and never returns, if Start has started this
// process as a keeper. Otherwise it returns false.
func becomeKeeper() bool {
	if len(os.Args) < 5 || os.Args[0] != keeperName || os.Getenv(keeperMark) == "" {
		return false
	}
	// This is the main thread, which exists as long as the process. The kernel sends the
	// parent-death signal to a child when the thread that started it ends.
	k := &keeper{says: os.NewFile(saysFile, "says"), private: os.Args[1], host: os.Getppid()}
	k.limits = parseLimits(os.Args[2])
	k.run(os.Args[3], os.Args[4:])
	os.Exit(0)
	return true
}

// A keeper is the parent of one process. When the process has ended, the keeper becomes
// the parent of the process's children.
type keeper struct {
	says    *os.File
	private string
	limits  Limits
	host    int // process id of the host
	pid     int
	ended   bool // the keeper has waited for the process; now another process may have its id
}

func (k *keeper) run(path string, args []string) {
	getThreads()
	goFirst() // must come before private.Keep, which gives the files in /proc to root
	// The keeper has the agent's environment, too, and hides it from other processes of this
	// user. The error is ignored: the agent also calls Keep, and logs a failure.
	_ = private.Keep()
	syscall.CloseOnExec(saysFile)
	syscall.CloseOnExec(heldFile)
	children := make(chan os.Signal, 1)
	signal.Notify(children, syscall.SIGCHLD)
	// If a service manager signals all processes of a service, only the agents should
	// react. The keeper uses Notify and not Ignore, because the process would inherit
	// ignored signals.
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
		// The process keeps this descriptor, because the interpreter of a script opens it.
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
	// The reader of the process's output must see the end of the process, not of the
	// keeper.
	_, _ = syscall.Close(1), syscall.Close(2)
	k.keep(children, listen())
	k.clear()
	k.say(wordGone, 0)
	if os.Getppid() != k.host && filepath.IsAbs(k.private) { // the host has died
		_ = os.RemoveAll(k.private) // the error is ignored, because the host is gone
	}
}

// getThreads creates the threads that a keeper needs. Later it may be impossible, if the
// process has started so many threads that the machine refuses more. Go's runtime ends a
// program that cannot create a thread.
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
			runtime.UnlockOSThread() // the thread is not released
		}()
	}
	ready.Wait()
	done.Done()
}

// memoryHandicap is how much higher an agent's oom_score_adj is than its engine's. When
// memory runs out, the kernel ends the process with the highest score. The largest score
// is 1000.
const memoryHandicap = 300

// goFirst makes the kernel end the agent and its children before the engine when memory
// runs out. An agent that takes all memory then costs only its own calls, not those of all
// agents. If the score cannot be set, nothing changes.
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

// environment returns the keeper's environment without the mark.
func environment() []string {
	var env []string
	for _, v := range os.Environ() {
		if v != keeperMark+"=1" {
			env = append(env, v)
		}
	}
	return env
}

// listen returns a channel with the bytes that the host sends. It is closed when the host
// is gone.
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

// keep watches the process and the host. It returns when the process has ended or must be
// killed.
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
			if alive { // the byte is killNow
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

// reap waits for every child that has ended. If the process itself has ended, reap
// notifies the host. left is true if there are more children.
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
			return false // the error is ECHILD
		case pid == 0:
			return true
		case pid == k.pid && !k.ended:
			k.ended = true
			k.say(wordExit, int(status))
		}
	}
}

// hasEnded reports whether a child has ended. It does not wait for the child: that must
// still be done.
func hasEnded(pid int) bool {
	var info unix.Siginfo // Signo stays 0 while the child runs
	err := unix.Waitid(unix.P_PID, pid, &info, unix.WEXITED|unix.WNOHANG|unix.WNOWAIT, nil)
	return err == nil && info.Signo != 0
}

// maxBlind limits how often the method clear searches /proc without finding any process,
// although the kernel reports that children exist. A process that is getting a new parent is
// briefly missing there. If /proc is hidden, no process is ever found.
const maxBlind = 20

// clear kills all descendants. A process that may not be killed, because it has changed its
// user, is ignored.
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
		time.Sleep(pause) // no event says that a process got a new parent
	}
}

// killGroup kills the group of the process at once. The kernel does this in one step, so no
// member can start another process meanwhile. It must be called before the process is
// waited for, because afterwards another group may have its id.
func (k *keeper) killGroup() { _ = syscall.Kill(-k.pid, syscall.SIGKILL) }

// killBelow kills the descendants of a process. It stops each process before it lists the
// children of that process, and kills none before all are stopped. Otherwise a program that
// starts endless copies of itself would be faster than the killing.
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
					continue // the process has ended, or belongs to another user
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

// fail reports to the host that the process could not be started.
func (k *keeper) fail(err error) {
	errno := syscall.EINVAL // if err has no number, for example because of a zero byte in a text
	errors.As(err, &errno)
	k.say(wordErrno, int(errno))
}

// say writes a line to the host. It fails only if the host is gone.
func (k *keeper) say(word string, number int) { _, _ = fmt.Fprintln(k.says, word, number) }
