// Package crypt seals what is sensitive before it is stored, and opens it again.
//
// In come a key (ParseKey, LoadOrCreateKeyFile) and bytes with the place that they belong
// to. Out come sealed bytes, which open in that place only, and tags that show whether
// bytes were changed. The package knows neither runs nor stores.
package crypt
