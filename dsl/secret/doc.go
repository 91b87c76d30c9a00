// Package secret handles what must not be shown and what must not be read: it puts secrets into
// a value right before a call, takes sensitive texts out of messages, and says which environment
// variables belong to the engine.
//
//	in:   values, texts, names of variables
//	out:  a document with its secrets, texts without them
//
// It touches nothing: the caller looks secrets up. The caller must not store what Resolve returns.
package secret
