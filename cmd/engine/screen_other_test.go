//go:build !linux

package main

import "github.com/rogpeppe/go-internal/testscript"

// screen needs a terminal, of which every system makes its own kind.
func screen(ts *testscript.TestScript, _ bool, _ []string) {
	ts.Fatalf("screen is only there on Linux")
}
