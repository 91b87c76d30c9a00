//go:build !linux

package agents_test

// engineMode would make the test binary an engine; here nobody asks for it.
const engineMode = "AGENTS_TEST_ENGINE"

func actEngine(string) {}
