// Package author has the commands for people who write workflows: init, validate, fmt, plan, graph,
// agents and schema. In: arguments. Out: text or JSON. Each command is in one file: it reads flags,
// calls a shared package and prints the result. The commands change only files of the module, and
// no run.
package author
