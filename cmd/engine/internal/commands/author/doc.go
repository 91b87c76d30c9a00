// Package author has the commands for people who write workflows: init, validate, fmt, plan,
// graph and agents. In: arguments. Out: text or JSON. Each command is one file: it reads
// flags, calls a shared package and prints the result. They change files of the module only,
// and no run.
package author
