// Package typed converts JSON to the input and output structs of actions, and back. It uses the
// tags of the struct fields.
//
// In: a Go type, and then JSON documents or values of that type. Out: the schema of the type's
// fields, and then values or JSON documents. The package calls no action and does no I/O. Package
// fastjson does the same faster; package typed decides which results are correct.
package typed
