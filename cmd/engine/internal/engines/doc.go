// Package engines makes what a command needs to work on runs: the pool of agents, the engine
// itself, the limits of the pool and of the engine, and the secrets of workflows. In: a Session and
// flags. Out: an engine.Node that the command runs. A secret may come from the environment or from
// a regular file. It never comes from the engine's own credentials, from the engine's state, or
// from the key file of the state.
package engines
