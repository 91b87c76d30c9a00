//go:build !unix

package main

import "os"

// lockFile does nothing here: several processes must not share a ledger.
func lockFile(*os.File) error { return nil }
