// Package doctor looks for errors and weaknesses in a state, its engines and its open runs. A
// weakness does no harm now, but would do harm after the next failure. In: the state of --dsn, and
// the directories of agents. Out: findings, and exit code 1 if one of them is an error. It only
// reads, and starts no agents.
package doctor
