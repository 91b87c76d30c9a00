package crypt

// ParseKey is parseKey, for the tests of package crypt_test.
var ParseKey = parseKey
