// Package moving compares the definition of a run with another definition, and says whether the run
// can be moved to it (engine migrate). It is pure: package machine uses it to decide, and the
// command line uses it to show the differences first.
package moving
