//go:build !linux

package main

// keepPrivate does nothing: this system has no such setting. Other processes of
// the same user may be able to read the environment that the engine was started
// with; run the engine as a user of its own.
func keepPrivate() error { return nil }
