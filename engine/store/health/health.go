package health

import "context"

// An Examiner is a store that can check its database for present problems and for problems
// that may come. The role is optional. For a store without this role, `engine doctor` says
// nothing about the store.
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

// The severities. OK is the least serious, and Error is the most serious.
const (
	OK Severity = iota
	Warning
	Error
)
