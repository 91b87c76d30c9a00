// Package syntax reads the text of files as blocks, arguments and expressions.
//
//	in:   bytes of a file, and the table of the attributes and blocks that each block may have (schema.go)
//	out:  Block with its arguments and inner blocks; the canonical layout of a file
//
// A new block of the language begins as a row in that table.
//
// It touches nothing but its arguments: the caller reads the files.
//
// Invariants:
//   - A file is measured (Prescan) before a parser sees it, so no text takes all memory or the
//     whole stack.
//   - HCL and its JSON form become the same blocks.
//   - Format changes nothing that has a meaning.
package syntax
