// Package fastjson is a second, faster way to convert JSON to the structs of actions and
// back.
//
// It has the same input and output as package typed. It handles only the common case, without
// building a tree. It passes everything unusual or wrong to package typed, which also makes
// the error texts. FuzzDecode and TestEncodeAgrees check that both packages give the same
// results.
//
// Without this package a step costs 11 % more CPU time
// (docs/decisions/0027-second-implementations.md).
package fastjson
