//go:build !linux && !darwin

package process

// space returns "": on this system, the package does not know to which machine a process number
// belongs.
func space() string { return "" }
