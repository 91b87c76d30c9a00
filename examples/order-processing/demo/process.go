package main

import (
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"time"
)

// A process describes a process that the demo has started and will stop.
type process struct {
	name string
	cmd  *exec.Cmd
	// Standard input of the process. To end the process, the demo closes it; nil = the demo sends
	// SIGTERM.
	stdin io.Closer
	exit  chan error
	log   string
	gone  bool // the process has ended already, so the method `stop` does nothing
}

// start starts a process whose output goes to a log file.
func (d *demo) start(log string, withStdin bool, name string, args ...string) *process {
	if d.err != nil {
		return nil
	}
	p := &process{name: log, exit: make(chan error, 1), log: filepath.Join(d.dir, log+".log")}
	p.cmd = exec.Command(filepath.Join(d.bin, name), args...) //nolint:noctx // the method `stop` ends it
	file, err := os.Create(p.log)
	if err != nil {
		d.err = fmt.Errorf("start %s: %w", log, err)
		return nil
	}
	p.cmd.Stdout, p.cmd.Stderr = file, file
	if withStdin {
		if p.stdin, err = p.cmd.StdinPipe(); err != nil {
			d.err = errors.Join(fmt.Errorf("start %s: %w", log, err), file.Close())
			return nil
		}
	}
	if err := p.cmd.Start(); err != nil {
		d.err = errors.Join(fmt.Errorf("start %s: %w", log, err), file.Close())
		return nil
	}
	go func() { p.exit <- errors.Join(p.cmd.Wait(), file.Close()) }()
	d.processes = append(d.processes, p)
	return p
}

// serve starts a server that writes its address to a ready file, and returns the address.
func (d *demo) serve(name string, args ...string) string {
	ready := filepath.Join(d.dir, name+".addr")
	p := d.start(name, true, name, append(args, "--ready-file", ready)...)
	for end := time.Now().Add(patience); d.err == nil; {
		text, err := os.ReadFile(ready)
		if err == nil {
			return strings.TrimSpace(string(text))
		}
		select {
		case err := <-p.exit:
			p.gone = true
			d.err = fmt.Errorf("%s ended at once: %w", name, err)
		case <-time.After(20 * time.Millisecond):
		}
		if time.Now().After(end) {
			d.err = fmt.Errorf("wait for %s: no address", name)
		}
	}
	return ""
}

// startEngine starts an engine. Its lease is short, so that the other engines soon notice its
// death. The engine gives each alert to a program that writes the alert to a file.
func (d *demo) startEngine(name string) *process {
	if d.err == nil {
		fmt.Fprintf(d.out, "$ engine serve %s --address %s --lease 3s --on-alert ./page-me &\n", d.module, name)
	}
	return d.start(name, false, "engine", "serve", d.module, "--dsn", d.dsn, "--address", name, "--lease", "3s", "--on-alert", d.pager())
}

// pager writes the program for alerts, unless it exists, and returns its path.
func (d *demo) pager() string {
	path := filepath.Join(d.dir, "page-me")
	if _, err := os.Stat(path); err == nil || d.err != nil {
		return path
	}
	if err := os.WriteFile(path, []byte("#!/bin/sh\ncat >> \"$0.log\"\n"), 0o700); err != nil {
		d.err = fmt.Errorf("write the program for alerts: %w", err)
	}
	return path
}

// awaitAlert waits until an engine has given an alert of the run to the program for alerts.
func (d *demo) awaitAlert(run string) {
	for end := time.Now().Add(patience); d.err == nil; time.Sleep(100 * time.Millisecond) {
		data, err := os.ReadFile(filepath.Join(d.dir, "page-me.log"))
		switch {
		case err == nil && strings.Contains(string(data), run):
			fmt.Fprintf(d.out, "the alert about %s: seen\n", run)
			return
		case time.Now().After(end):
			d.err = fmt.Errorf("waited for the alert about %s in vain: %s %w", run, data, err)
		}
	}
}

// kill ends a process with SIGKILL.
func (d *demo) kill(p *process) {
	if d.err != nil {
		return
	}
	fmt.Fprintf(d.out, "$ kill -9 %s\n", p.name)
	if err := p.cmd.Process.Kill(); err != nil {
		d.err = fmt.Errorf("kill %s: %w", p.name, err)
		return
	}
	<-p.exit
	p.gone = true
}

// stop asks a process to end, and waits until it has ended. If the process does not end within 30
// seconds, stop kills it.
func (p *process) stop() error {
	if p.gone {
		return nil
	}
	var err error
	if p.stdin != nil {
		err = p.stdin.Close()
	} else {
		err = p.cmd.Process.Signal(syscall.SIGTERM)
	}
	select {
	case end := <-p.exit:
		if end != nil {
			err = errors.Join(err, fmt.Errorf("%s ended badly: %w", p.name, end))
		}
		return err
	case <-time.After(30 * time.Second):
	}
	return errors.Join(err, fmt.Errorf("%s does not stop", p.name), p.cmd.Process.Kill(), <-p.exit)
}

// showLogs prints the logs of all processes, after an error.
func (d *demo) showLogs() {
	for _, p := range d.processes {
		if data, err := os.ReadFile(p.log); err == nil {
			fmt.Fprintf(d.out, "\n-- log of %s\n%s", p.name, data)
		}
	}
}
