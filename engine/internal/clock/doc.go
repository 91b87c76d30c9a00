// Package clock returns the time of the store, and how long the engine's lease lasts.
//
// In: the store's answers to ticks. A tick renews the lease and returns the store's time. Out:
// store time, and the end of the lease. The package reads no clock except that of this process.
//
// Two engines of one store read nearly the same time, even if their own clocks differ. The
// returned times never go backwards.
package clock
