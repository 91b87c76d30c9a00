// Package goal shows which run holds each unique key, and resets goals.
//
// In: the workflow and the key that a person gave. Out: text or JSON. The package
// engine/store/goals has the rules for a reset.
package goal
