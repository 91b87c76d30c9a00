// Package session opens the state. In: --dsn, or the directory of a module. Out: a Session,
// which holds the store, the encryption keys and the definitions. It opens the embedded file
// or the database for one kind of access: to read, to send verbs, or to work on runs. It
// starts no engine and calls no agent.
//
// No message shows the password of a DSN. The package never makes a new key for a state that was
// written with a key.
package session
