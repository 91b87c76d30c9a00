//go:build !unix

package main

import (
	"os"
	"syscall"
)

func groupAttr() *syscall.SysProcAttr { return nil }

// killGroup kills only the program itself, because this system has no process groups.
func killGroup(p *os.Process) error { return p.Kill() }
