//go:build !unix

package main

import "os"

// lockFile does nothing on this system. So on this system several processes must not share the
// file of a ledger.
func lockFile(*os.File) error { return nil }
