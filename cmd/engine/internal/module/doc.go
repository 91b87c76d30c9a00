// Package module finds and loads the files that a person wrote. In: the PATH of a module, --var,
// and the directories of agents. Out: a Module (parsed), a Linked (checked against the schemas of
// its agents) or a Request (with the values of its variables). It reads files in the working
// directory and below PATH, and files of --var-file. It starts agents to ask for their schemas. For
// `engine init` it writes the lock file, and copies agents into the directory of the module. It
// writes nothing else.
package module
