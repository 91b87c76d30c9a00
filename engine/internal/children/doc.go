// Package children answers the calls of steps that start child runs. For such a step, the engine
// is the agent: a call submits the child run, and the end of the child run is the answer.
//
// A child run is an ordinary run with a name that follows from the idempotency key of its call.
// So a call that is sent again, by any engine, finds the same child run. A call that waits needs
// no goroutine. The engine learns of the end of a child run in two ways. If the child ends in the
// same engine, the method Ended reports that at once. In addition, the engine asks the store about
// all awaited child runs, with a pause of Config.Poll. The second way alone finds every end; the
// first way is only faster.
package children
