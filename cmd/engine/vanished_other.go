//go:build !unix

package main

// running is true: nobody can be asked.
func running(int) bool { return true }
