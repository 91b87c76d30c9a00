// Package plan says what apply would do. In: a module.Request. Out: the steps, the undo of each
// step, and how long the steps may take, as text and as JSON. The steps are in waves: all steps of
// a wave can start together. The package reads the state to find runs that exist already, and
// changes nothing.
package plan
