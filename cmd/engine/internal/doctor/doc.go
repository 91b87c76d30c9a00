// Package doctor looks for what is wrong with a state, its engines and its open runs, or
// would not survive the next failure. In: a Session. Out: findings, and exit code 1 if one
// of them is an error. It only reads, and starts no agents.
package doctor
