// Package plan says what apply would do. In: a module.Request. Out: the steps in waves, the undo
// of each step, and how long the steps may take, as text and as JSON. It reads the state to find
// runs that exist already, and changes nothing.
package plan
