package leash

import (
	"bufio"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"
)

// hostMode makes the test binary a host: it starts the script that the variable
// names and waits to be killed.
const hostMode = "LEASH_TEST_HOST"

func TestMain(m *testing.M) {
	path := os.Getenv(hostMode)
	if path == "" {
		os.Exit(m.Run())
	}
	p, err := Start(Command{Path: path, Args: []string{path}, Env: []string{"PATH=" + os.Getenv("PATH")}, Stdout: os.Stdout, Stderr: os.Stderr, Private: filepath.Dir(path)})
	fmt.Println(p, err)
	// A timer and not an empty select: the runtime would end a process in which all
	// goroutines wait for ever, and the host must die only when the test kills it.
	for {
		time.Sleep(time.Hour)
	}
}

// stubborn is a process that ignores SIGTERM. It has a child that ignores SIGTERM,
// too, and has left the process group and the session. Each writes its process id
// to the file that $0 names, with a suffix.
const stubborn = `trap '' TERM
setsid sh -c 'trap "" TERM; echo $$ > "$0.new"; mv "$0.new" "$0.child"; sleep 600; sleep 600' "$0" &
echo $$ > "$0.new2"; mv "$0.new2" "$0.self"
`

// script writes an executable script in a directory of its own.
func script(t *testing.T, text string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "script")
	if err := os.WriteFile(path, []byte("#!/bin/sh\n"+text), 0o700); err != nil {
		t.Fatal(err)
	}
	return path
}

func start(t *testing.T, path string) *Process {
	t.Helper()
	p, err := Start(Command{Path: path, Args: []string{path}, Env: []string{"PATH=" + os.Getenv("PATH")}, Stdout: os.Stdout, Stderr: os.Stderr})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(p.Kill)
	return p
}

// pidIn waits for a process id in a file. The process is killed when the test ends.
func pidIn(t *testing.T, path string) int {
	t.Helper()
	for end := time.Now().Add(20 * time.Second); time.Now().Before(end); <-time.After(5 * time.Millisecond) {
		data, err := os.ReadFile(path)
		if err != nil {
			continue
		}
		pid, err := strconv.Atoi(strings.TrimSpace(string(data)))
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() {
			if alive(pid) {
				_ = syscall.Kill(pid, syscall.SIGKILL)
			}
		})
		return pid
	}
	t.Fatalf("no process id in %s", path)
	return 0
}

// alive reports whether a process exists and is no zombie.
func alive(pid int) bool {
	stat, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	return err == nil && !strings.Contains(string(stat), ") Z ")
}

func awaitGone(t *testing.T, what string, pid int) {
	t.Helper()
	for end := time.Now().Add(20 * time.Second); alive(pid); <-time.After(5 * time.Millisecond) {
		if time.Now().After(end) {
			t.Fatalf("%s (pid %d) still runs", what, pid)
		}
	}
}

func TestKillEndsEveryDescendant(t *testing.T) {
	path := script(t, stubborn+"sleep 600")
	p := start(t, path)
	self, child := pidIn(t, path+".self"), pidIn(t, path+".child")
	if p.Pid() != self {
		t.Errorf("Pid = %d, the process says %d", p.Pid(), self)
	}
	p.Kill()
	err := p.Wait()
	var exit *ExitError
	if !errors.As(err, &exit) || err.Error() != "signal: killed" {
		t.Errorf("Wait = %v, want signal: killed", err)
	}
	if alive(self) || alive(child) {
		t.Errorf("after Wait the process runs: %t, its child in a session of its own: %t", alive(self), alive(child))
	}
	p.Kill() // does nothing
}

func TestEndOfTheProcessEndsEveryDescendant(t *testing.T) {
	path := script(t, stubborn+`while [ ! -e "$0.child" ]; do sleep 0.01; done; exit 3`)
	p := start(t, path)
	child := pidIn(t, path+".child")
	if err := p.Wait(); err == nil || err.Error() != "exit status 3" {
		t.Errorf("Wait = %v, want exit status 3", err)
	}
	if alive(child) {
		t.Error("the child in a session of its own outlived the process")
	}
}

// The host is killed with SIGKILL, so that it can do nothing any more.
func TestDeathOfTheHostEndsEveryDescendant(t *testing.T) {
	path := script(t, stubborn+"sleep 600; sleep 600")
	host := exec.Command("/proc/self/exe")
	host.Env = append(os.Environ(), hostMode+"="+path)
	if err := host.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = host.Process.Kill() })
	self, child := pidIn(t, path+".self"), pidIn(t, path+".child")
	if err := host.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	_ = host.Wait()
	awaitGone(t, "the process", self)
	awaitGone(t, "its child in a session of its own", child)
	for end := time.Now().Add(20 * time.Second); ; <-time.After(5 * time.Millisecond) {
		if _, err := os.Stat(filepath.Dir(path)); os.IsNotExist(err) {
			break
		}
		if time.Now().After(end) {
			t.Fatal("the private directory is left behind")
		}
	}
}

// A process that ends when it is asked to has the time for it.
func TestDeathOfTheHostLetsTheProcessEnd(t *testing.T) {
	dir := t.TempDir()
	path := script(t, `trap 'echo asked > `+dir+`/asked; exit 0' TERM; echo $$ > "$0.new"; mv "$0.new" "$0.self"; while :; do sleep 0.01; done`)
	host := exec.Command("/proc/self/exe")
	host.Env = append(os.Environ(), hostMode+"="+path)
	if err := host.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = host.Process.Kill() })
	self := pidIn(t, path+".self")
	if err := host.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	_ = host.Wait()
	awaitGone(t, "the process", self)
	if _, err := os.Stat(filepath.Join(dir, "asked")); err != nil {
		t.Errorf("the process was not asked to end: %v", err)
	}
}

func TestDeathOfTheKeeperEndsTheProcess(t *testing.T) {
	path := script(t, `trap '' TERM; echo $$ > "$0.new"; mv "$0.new" "$0.self"; exec sleep 600`)
	p := start(t, path)
	self := pidIn(t, path+".self")
	if err := p.keeper.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	if err := p.Wait(); err == nil || !strings.Contains(err.Error(), "keeper") {
		t.Errorf("Wait = %v, want that the keeper was lost", err)
	}
	awaitGone(t, "the process", self)
}

// An orphan of the process is waited for while the process runs: zombies would
// fill the table of processes.
func TestOrphansAreReaped(t *testing.T) {
	path := script(t, `( while [ ! -e "$0.go" ]; do sleep 0.01; done & echo $! > "$0.new"; mv "$0.new" "$0.orphan" )
sleep 600`)
	start(t, path)
	orphan := pidIn(t, path+".orphan")
	if err := os.WriteFile(path+".go", nil, 0o600); err != nil {
		t.Fatal(err)
	}
	for end := time.Now().Add(20 * time.Second); ; <-time.After(5 * time.Millisecond) {
		if _, err := os.Stat(fmt.Sprintf("/proc/%d", orphan)); os.IsNotExist(err) {
			return
		}
		if time.Now().After(end) {
			t.Fatal("the orphan is a zombie")
		}
	}
}

func TestRefusedStarts(t *testing.T) {
	plain := filepath.Join(t.TempDir(), "plain")
	if err := os.WriteFile(plain, []byte("\x7fNOT"), 0o700); err != nil {
		t.Fatal(err)
	}
	for path, want := range map[string]error{
		plain: syscall.ENOEXEC, "/nowhere/program": syscall.ENOENT, filepath.Dir(plain): syscall.EACCES,
	} {
		if _, err := Start(Command{Path: path, Args: []string{path}}); !errors.Is(err, want) {
			t.Errorf("Start(%s) = %v, want %v", path, err, want)
		}
	}
}

// The process gets the environment that it is given, and none of the keeper's
// descriptors.
func TestProcessSeesNothingOfTheKeeper(t *testing.T) {
	path := script(t, "env | sort; ls -l /proc/$$/fd")
	r, w, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	p, err := Start(Command{Path: path, Args: []string{path}, Env: []string{"A=1", "PATH=" + os.Getenv("PATH")}, Stdout: w, Stderr: w})
	if err = errors.Join(err, w.Close()); err != nil {
		t.Fatal(err)
	}
	var lines []string
	for s := bufio.NewScanner(r); s.Scan(); {
		lines = append(lines, s.Text())
	}
	if err := p.Wait(); err != nil {
		t.Fatal(err)
	}
	text := strings.Join(lines, "\n")
	if !strings.Contains(text, "A=1") || strings.Contains(text, keeperMark) {
		t.Errorf("environment:\n%s", text)
	}
	for _, l := range lines {
		fields := strings.Fields(l)
		if i := len(fields) - 3; i > 0 && fields[i+1] == "->" && (fields[i] == "3" || fields[i] == "4") {
			t.Errorf("the process has a descriptor of its keeper: %s", l)
		}
	}
}
