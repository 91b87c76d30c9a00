// Package fastjson is a second, faster way from JSON to the structs of actions and back.
//
// In comes what package typed takes, and out goes the same. This package follows only
// the common case, without a tree in between. It hands everything unusual or wrong to
// package typed, which also words the errors. FuzzDecode and TestEncodeAgrees hold both
// ways to the same results.
//
// A step costs 11 % more CPU without it (docs/decisions/0027-second-implementations.md).
package fastjson
