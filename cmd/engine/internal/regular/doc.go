// Package regular reads and replaces files that a person or a checkout provides. In: names
// of files. Out: their bytes. It opens regular files only and reads a bounded number of
// bytes, so that a pipe or a device in a checkout can neither block a command nor fill its
// memory.
package regular
