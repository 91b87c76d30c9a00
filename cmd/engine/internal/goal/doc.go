// Package goal shows which run holds each unique key, and resets goals.
//
// In: the workflow and the key that a person gave. Out: text or JSON. The rules for a reset are those
// of the store (engine/store/goals).
package goal
