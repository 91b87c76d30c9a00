// Package syntax reads the text of files as blocks, arguments and expressions.
//
//	in:   bytes of a file, and the table of the attributes and blocks that each block may have
//	      (schema.go and action.go)
//	out:  Block with its arguments and inner blocks; the canonical layout of a file
//
// To add a block to the language, add it to that table first.
//
// The package opens no file: the caller passes the bytes.
//
// Invariants:
//   - Prescan checks the size and the nesting of a file before a parser reads the file. So no
//     text can use all memory or the whole stack.
//   - A file in HCL and the same file in the JSON form give the same blocks.
//   - Format does not change the meaning of a file.
package syntax
