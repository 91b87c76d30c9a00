// Package crypt encrypts sensitive bytes before they are stored, and decrypts them.
//
// Input is a key (ParseKeys, LoadOrCreateKeyFile), and bytes with the location in the store to
// which they belong. Output is sealed bytes, which can be opened for that location only, and tags,
// which show whether bytes were changed. The package knows neither runs nor stores.
package crypt
