// Package verbs sends a person's verb to a run and waits for the answer. In: a Verb from a
// command. Out: a message in the run's inbox, and the answer of the run's owner. A refusal names
// the status of the run and the commands that the run would accept. No engine is needed in this
// process: the engine that owns the run acts on the message.
package verbs
