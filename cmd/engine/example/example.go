// Package example holds the workflows that `engine init --example NAME` writes, one
// directory for each.
package example

import "embed"

// Files holds one directory for each example.
//
//go:embed hello
var Files embed.FS
