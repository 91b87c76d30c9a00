// Package migrate is the work of `engine migrate`: it compares the definition of a run with another
// one, shows the differences, and asks the owner of the run to move it.
package migrate
