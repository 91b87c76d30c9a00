// Package typed is the way from JSON to the structs of actions and back, by the tags of
// their fields.
//
// In come a Go type, and then JSON documents or values of that type; out go the schema
// of the type's fields, and the other form. It calls no action and does no I/O. It is
// the reference for package fastjson, which does the same faster.
package typed
