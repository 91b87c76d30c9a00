// Package crypt encrypts sensitive bytes before they are stored, and decrypts them.
//
// In: a key (ParseKey, LoadOrCreateKeyFile), and bytes with the place to which they belong.
// Out: sealed bytes, which can be opened in that place only, and tags that show whether
// bytes were changed. The package knows neither runs nor stores.
package crypt
