package noun

import (
	"regexp"
	"strconv"

	"github.com/saga-engine/engine/dsl/internal/eval"
)

// An Admit is an admit block of a workflow: a SELECT that checks rows of the database in the
// transaction that accepts a run.
type Admit struct {
	Name string // label of the block
	SQL  string // one SELECT; its first column says whether the run is accepted
	// Bump is one UPDATE that changes the version of each checked row; "" if Lock is not "version".
	Bump string
	Lock string // one of AdmitLocks
	// Args returns the parameters of SQL and Bump as texts; a text nil means NULL. If Args itself
	// is nil, the block has no parameters.
	Args               func(*eval.Scope) ([]*string, error)
	Params, BumpParams int                               // SQL has the parameters $1 to $Params, and Bump has $1 to $BumpParams
	Message            func(*eval.Scope) (string, error) // text for people if the run is refused; never nil
}

// AdmitLocks are the values of the argument `lock` of an admit block. The first one is the default.
var AdmitLocks = []string{"share", "update", "version"}

var (
	quotedSQL    = regexp.MustCompile(`'[^']*'|"[^"]*"|--[^\n]*`)
	parameterSQL = regexp.MustCompile(`\$([0-9]+)`)
)

// Parameters returns the highest number of a parameter in an SQL text, such as 2 for $1 and $2. It
// returns 0 if there is none. It ignores texts in quotes, and comments that begin with --.
func Parameters(text string) int {
	most := 0
	for _, m := range parameterSQL.FindAllStringSubmatch(quotedSQL.ReplaceAllString(text, " "), -1) {
		if n, err := strconv.Atoi(m[1]); err == nil {
			most = max(most, n)
		}
	}
	return most
}
