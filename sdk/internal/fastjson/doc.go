// Package fastjson is a second, faster way to convert JSON to the input and output structs of
// actions, and back.
//
// It gives the same results as package typed; the tests FuzzDecode and TestEncodeAgrees compare
// both packages. It handles only the common case, without building a tree. It passes everything
// unusual or wrong to package typed, which also makes the error texts.
//
// Without this package a step costs 11 % more CPU time
// (docs/decisions/0027-second-implementations.md).
package fastjson
