// Package plan says what apply would do. In: a module.Request. Out: the steps in waves, their
// undo, and how long they may take, for people and as JSON. It reads the state to find runs
// that exist already, and changes nothing.
package plan
