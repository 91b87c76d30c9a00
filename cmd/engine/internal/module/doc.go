// Package module finds and loads the files that a person wrote. In: the PATH of a module, --var,
// and the directories of agents. Out: a Module (parsed), a Linked (checked against the schemas of
// its agents) or a Request (with the values of its variables). It reads files below PATH and
// starts agents to ask for their schemas. It writes the lock file for `engine init` and nothing
// else.
package module
