// Package keys makes encryption keys, counts what each key of a state has sealed, and seals a state
// again with its newest key. In: the state of --dsn. Out: text or JSON, and exit code 1 if the
// state still has data that an older key has sealed.
package keys
