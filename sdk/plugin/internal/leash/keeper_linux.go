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

// Names, descriptors and words with which the host and the keeper communicate.
const (
	keeperName = "engine-leash"
	keeperMark = "ENGINE_LEASH" // variable that makes a program a keeper; the keeper does not pass it on
	saysFile   = 3              // descriptor to which the keeper writes
	// Descriptor that the keeper reads. At the end of file, the keeper knows that the host is gone.
	heldFile = 4
	runFile  = 5   // descriptor of the file to run, if there is one
	killNow  = 'k' // byte with which the host asks the keeper to kill the process at once

	// Words that the keeper writes to the host, each with a number.
	wordPid   = "pid"   // the process was started; the number is its process id
	wordOver  = "over-" // the tree exceeded the limit whose name follows; the number is the measured value
	wordErrno = "errno" // the process could not be started; the number is the system's error number
	wordExit  = "exit"  // the process has ended; the number is its wait status
	wordGone  = "gone"  // the keeper has ended all descendants that it can end; the number has no meaning
)

// Grace is how long a process may take to end after its host has died. When the host dies,
// the keeper sends SIGTERM to the process. After Grace it kills the process and all its
// descendants.
const Grace = 1500 * time.Millisecond

// The initialization of this variable calls becomeKeeper before main begins, and before most
// other packages are initialized. So each program that starts processes with this package can
// also run as the keeper of such a process.
var _ = becomeKeeper()

// becomeKeeper returns false, unless Start has started this process as a keeper. In a keeper
// it does the work of the keeper and then ends the process.
func becomeKeeper() bool {
	if len(os.Args) < 5 || os.Args[0] != keeperName || os.Getenv(keeperMark) == "" {
		return false
	}
	// This code runs on the main thread, which exists as long as the process. This matters
	// because the kernel sends the parent-death signal to a child when the thread that started
	// the child ends.
	k := &keeper{says: os.NewFile(saysFile, "says"), private: os.Args[1], host: os.Getppid()}
	k.limits = parseLimits(os.Args[2])
	k.run(os.Args[3], os.Args[4:])
	os.Exit(0)
	return true
}

// A keeper is the parent of one process, which it has started. When this process ends, the
// keeper becomes the parent of the children that the process leaves behind.
type keeper struct {
	says    *os.File // pipe to the host
	private string   // directory to remove if the host dies; "" = none
	limits  Limits
	host    int // process id of the host
	pid     int // id of the process that the keeper starts; 0 before the start
	// The process with the id pid has ended, and wait4 was called for it. So another process may
	// now have this id.
	ended bool
}

func (k *keeper) run(path string, args []string) {
	getThreads()
	goFirst() // must come before private.Keep: afterwards only root may write oom_score_adj
	// The keeper has the agent's environment, too. Keep hides it from other processes of this
	// user. The keeper ignores the error of Keep, because the agent also calls Keep and logs
	// the error.
	_ = private.Keep()
	syscall.CloseOnExec(saysFile)
	syscall.CloseOnExec(heldFile)
	children := make(chan os.Signal, 1)
	signal.Notify(children, syscall.SIGCHLD)
	// A service manager may send SIGTERM or another signal of the operating system to all processes
	// of a service. Only the agents should react to it, not the keeper. The keeper calls Notify and
	// not Ignore: a signal that the keeper ignores would be ignored in the agent, too.
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
		// If the file is a script, its interpreter opens the descriptor runFile. So the process
		// must inherit this descriptor.
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
	// Close the keeper's copies of the output pipes. Otherwise the host would see the end of
	// the output only when the keeper ends.
	_, _ = syscall.Close(1), syscall.Close(2)
	k.keep(children, listen())
	k.clear()
	k.say(wordGone, 0)
	if os.Getppid() != k.host && filepath.IsAbs(k.private) { // the host has died
		_ = os.RemoveAll(k.private) // the error is ignored, because the host is gone
	}
}

// getThreads creates the threads that a keeper needs. Later this may be impossible, because
// the process may have started so many threads that the machine allows no more. Go's runtime
// ends a program that cannot create a thread.
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
			runtime.UnlockOSThread() // Go keeps the thread for other goroutines
		}()
	}
	ready.Wait()
	done.Done()
}

// memoryHandicap is how much the oom_score_adj of an agent is above that of its engine. When memory
// runs out, the kernel ends the process with the highest score. The largest allowed oom_score_adj
// is 1000.
const memoryHandicap = 300

// goFirst raises the oom_score_adj of this process; its children inherit the value. So when
// memory runs out, the kernel ends the agent and its children before the engine. Then only the
// calls of this agent fail, and not the calls of all agents. goFirst ignores errors.
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

// environment returns the keeper's environment without the variable keeperMark.
func environment() []string {
	var env []string
	for _, v := range os.Environ() {
		if v != keeperMark+"=1" {
			env = append(env, v)
		}
	}
	return env
}

// listen returns a channel with the bytes that the host sends. The channel is closed when the
// host is gone.
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
			if alive { // the host is alive and has sent the byte killNow
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

// reap removes all ended children from the process table. If the process k.pid has ended, reap
// first kills the rest of the process group that k.pid leads, and then notifies the host. The
// result `left` is true if at least one child is still running.
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
			return false // the error is ECHILD: the keeper has no child
		case pid == 0:
			return true
		case pid == k.pid && !k.ended:
			k.ended = true
			k.say(wordExit, int(status))
		}
	}
}

// hasEnded reports whether a child has ended. It leaves the child in the process table, so the
// caller must still call wait4.
func hasEnded(pid int) bool {
	var info unix.Siginfo // Signo stays 0 while the child runs
	err := unix.Waitid(unix.P_PID, pid, &info, unix.WEXITED|unix.WNOHANG|unix.WNOWAIT, nil)
	return err == nil && info.Signo != 0
}

// maxBlind is a number of searches of /proc. If so many searches find no process, although the
// kernel reports that children exist, the method `clear` gives up. It does not give up after one
// such search: while a process gets a new parent, /proc does not list this process for a moment.
// But if /proc is hidden, no search ever finds a process.
const maxBlind = 20

// clear kills all descendants of the keeper and waits for their end. It does not wait for a process
// that has changed its user, because the keeper has no permission to kill such a process. It also
// gives up if /proc is hidden: see maxBlind.
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
		time.Sleep(pause) // the kernel does not report when a descendant has become a child of the keeper
	}
}

// killGroup kills the process group that the process k.pid leads. The kernel kills all members at
// once, so no member can start another process meanwhile. killGroup must be called before wait4 for
// the process k.pid, because afterwards another group may have the same id.
func (k *keeper) killGroup() { _ = syscall.Kill(-k.pid, syscall.SIGKILL) }

// killBelow kills the descendants of a process. It stops each process before it lists the children
// of that process, and kills the descendants only after it has stopped all of them. The reason: a
// program that starts copies of itself without end could start copies faster than killBelow kills
// them one after the other. The result `seen` is 0 if killBelow has found no descendant. The result
// `killed` is how many descendants it has killed.
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
	errno := syscall.EINVAL // used if err has no error number, for example for a zero byte in a text
	errors.As(err, &errno)
	k.say(wordErrno, int(errno))
}

// say writes a line with a word and a number to the host. It ignores the error, because
// writing fails only if the host is gone.
func (k *keeper) say(word string, number int) { _, _ = fmt.Fprintln(k.says, word, number) }
