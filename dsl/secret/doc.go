// Package secret protects secrets and sensitive texts. It puts secrets into a value right before
// a call, and removes sensitive texts from messages. It also says which environment variables
// workflows must not read, because they belong to the engine.
//
//	in:   values, texts, names of variables
//	out:  a document with its secrets, texts without them
//
// The package reads no environment variable and no file: the caller passes a function that
// looks secrets up. The caller must not store the document that Resolve returns.
package secret
