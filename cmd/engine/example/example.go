// Package example holds the example workflows that `engine init --example NAME` writes. Each
// example has its own directory.
package example

import "embed"

// Files holds one directory for each example.
//
//go:embed hello
var Files embed.FS
