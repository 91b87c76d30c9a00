// Package crypt seals sensitive bytes before they are stored, and opens them again.
//
// In come a key (ParseKey, LoadOrCreateKeyFile) and bytes with the place that they belong
// to. Out come sealed bytes, which open in that place only, and tags that show whether
// bytes were changed. The package knows neither runs nor stores.
package crypt
