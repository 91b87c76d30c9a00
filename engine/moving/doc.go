// Package moving compares the definition of a run with another definition, and says whether the run
// can be moved to the other one (engine migrate). It also says what a new run takes over from an
// ended run (engine restart). The package is pure: package machine uses it to decide, and the
// command line uses it to show the result first.
package moving
