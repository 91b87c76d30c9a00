// Package submit turns submissions into runs.
//
// In: a Request, which says what the new run is. Out: the first row of the run in the store, or the
// reason why there is no such run. There are two ways:
//
//   - A Submitter gives the run to the present membership of an engine. This engine owns the run
//     from its first row on.
//   - The function All stores many runs without an owner. It joins the store only for this time, so
//     it needs no running engine.
//
// A run is made only if everything about it that can be evaluated was evaluated without an error:
// agents, priority, limit, unique key, checks and deadline. If the store does not answer, the
// caller gets an error that Refused distinguishes from a refusal. The result then names the run
// that the store may have.
//
// The package writes definitions and first rows of runs. It calls no agent, and it decides nothing
// about a run that exists.
//
// The source files form layers, lowest first: request, check, key; refused; maker; submitter; land,
// batch.
package submit
