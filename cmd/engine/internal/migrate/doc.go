// Package migrate is the work of `engine migrate`: it compares the definition of a run with
// another definition, shows the differences, and asks the owner of the run to move the run.
package migrate
