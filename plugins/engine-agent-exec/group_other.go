//go:build !unix

package main

import (
	"os"
	"syscall"
)

func groupAttr() *syscall.SysProcAttr { return nil }

// killGroup kills the program; there are no groups to kill here.
func killGroup(p *os.Process) error { return p.Kill() }
