package health

import "context"

// An Examiner is a store that can check itself for problems, also for future ones. The role
// is optional: without it `engine doctor` says nothing about the store.
type Examiner interface {
	Examine(ctx context.Context) ([]Finding, error)
}

// A Finding is the result of one check of a store.
type Finding struct {
	Name    string   // name of the check: "sslmode", "pooler", …
	Level   Severity // how serious the finding is
	Message string   // what was found
	Hint    string   // what to do; "" = there is nothing to do
}

// A Severity says how serious a finding is.
type Severity uint8

// The severities. A later one is more serious.
const (
	OK Severity = iota
	Warning
	Error
)
