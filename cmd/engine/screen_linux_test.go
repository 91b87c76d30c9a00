package main

import (
	"bytes"
	"fmt"
	"os"
	"os/exec"
	"strconv"
	"syscall"
	"unsafe"

	"github.com/rogpeppe/go-internal/testscript"
)

// screen FILE COMMAND… runs a command whose stderr is a terminal and writes
// what appears there to the file. The terminal is nobody's controlling one, and
// stays open until everything has been read: the kernel throws away what is on
// its way to a terminal when the process that it controls ends.
func screen(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) < 2 {
		ts.Fatalf("usage: screen FILE COMMAND…")
	}
	ctrl, tty, err := openTerminal()
	ts.Check(err)
	defer ctrl.Close()
	defer tty.Close()
	const end = "\x00end of screen\x00"
	shown := make(chan []byte, 1)
	go func() {
		var all []byte
		buf := make([]byte, 1<<16)
		for {
			n, err := ctrl.Read(buf)
			all = append(all, buf[:n]...)
			if before, _, found := bytes.Cut(all, []byte(end)); found || err != nil {
				shown <- before
				return
			}
		}
	}()
	cmd := exec.Command(lookPath(ts, args[1]), args[2:]...)
	cmd.Dir, cmd.Stderr = ts.MkAbs("."), tty
	for _, name := range []string{
		"PATH", "HOME", "TMPDIR", "LEDGER", "ENGINE_DSN", "ENGINE_PLUGIN_DIR", "TERM", "LANG", "NO_COLOR",
	} {
		if v := ts.Getenv(name); v != "" {
			cmd.Env = append(cmd.Env, name+"="+v)
		}
	}
	failed := cmd.Run()
	_, err = tty.WriteString(end)
	ts.Check(err)
	text := <-shown
	ts.Check(os.WriteFile(ts.MkAbs(args[0]), text, 0o644))
	if failed != nil {
		ts.Fatalf("%v; the screen:\n%s", failed, text)
	}
}

// openTerminal returns the two ends of a new terminal.
func openTerminal() (ctrl, tty *os.File, err error) {
	ctrl, err = os.OpenFile("/dev/ptmx", os.O_RDWR, 0)
	if err != nil {
		return nil, nil, err
	}
	var number, locked uint32
	for request, arg := range map[uintptr]*uint32{syscall.TIOCGPTN: &number, syscall.TIOCSPTLCK: &locked} {
		if _, _, errno := syscall.Syscall(syscall.SYS_IOCTL, ctrl.Fd(), request, uintptr(unsafe.Pointer(arg))); errno != 0 {
			ctrl.Close()
			return nil, nil, fmt.Errorf("make a terminal: %w", errno)
		}
	}
	tty, err = os.OpenFile("/dev/pts/"+strconv.Itoa(int(number)), os.O_RDWR|syscall.O_NOCTTY, 0)
	if err != nil {
		ctrl.Close()
		return nil, nil, err
	}
	return ctrl, tty, nil
}
