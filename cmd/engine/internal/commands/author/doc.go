// Package author has the commands for people who write workflows: init, validate, fmt, plan,
// graph and agents. In: arguments. Out: text or JSON. Each command is one file: flags, a call
// into a room, output. They change files of the module only, and no run.
package author
