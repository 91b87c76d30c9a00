// Package typed converts JSON to the structs of actions and back, using the tags of their
// fields.
//
// In: a Go type, and then JSON documents or values of that type. Out: the schema of the
// type's fields, and then values or JSON documents. The package calls no action and does no
// I/O. It is the reference for package fastjson, which does the same faster.
package typed
