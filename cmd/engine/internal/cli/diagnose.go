package cli

import (
	"errors"
	"fmt"
	"io/fs"
	"strings"

	"github.com/saga-engine/engine/cmd/engine/internal/words"
	"github.com/saga-engine/engine/dsl/diag"
	"github.com/saga-engine/engine/engine/crypt"
	"github.com/saga-engine/engine/engine/journal"
	"github.com/saga-engine/engine/engine/store"
	"github.com/saga-engine/engine/engine/store/postgres"
	"github.com/saga-engine/engine/engine/store/sqlite"
)

// Diagnose turns any error into diagnostics for people. The diagnostics say what is wrong, where,
// and what to do.
func Diagnose(err error) diag.Diagnostics {
	var p *Problem
	var list *diag.DiagnosticsError
	switch {
	case errors.As(err, &p):
		return p.Diags
	case errors.As(err, &list):
		return list.Diagnostics
	}
	summary, detail := explain(err)
	return diag.Diagnostics{{Severity: diag.SeverityError, Summary: summary, Detail: detail}}
}

// WrongKey is the title of the error for an encryption key that is not the key of the state.
const WrongKey = "Wrong encryption key"

func explain(err error) (summary, detail string) {
	var locked *sqlite.LockedError
	var schema *store.SchemaError
	var st *StoreError
	var unsure *UnsureError
	var key *crypt.KeyError
	var loss *store.LossError
	var other *postgres.WrongServerError
	var history *journal.HistoryError
	switch {
	case errors.As(err, &unsure):
		return unsure.explain()
	case errors.As(err, &loss):
		return "Committed work is lost", words.UpperFirst(loss.Error()) + ". The engine has stopped: what it knows and what the database holds " +
			"are two histories now. Compare the runs with what was really done before an engine is started again."
	case errors.As(err, &other):
		return "Not the server that holds the state", words.UpperFirst(other.Error()) + "."
	case errors.As(err, &history):
		return "History does not verify", fmt.Sprintf("Run %s: row %d of its journal %s. No engine continues the run. "+
			"`engine db verify %s` checks it again, `engine db verify` all runs. Compare the run with a backup of the state, and look who can write to the state.",
			history.Name, history.Seq, history.Reason, words.Quote(history.Name))
	case errors.As(err, &key) && key.Given != "":
		return WrongKey, words.UpperFirst(key.Error()) + "."
	case errors.As(err, &key):
		return "Encryption key needed", words.UpperFirst(key.Error()) + "."
	case errors.As(err, &st):
		text := strings.TrimSuffix(st.Err.Error(), ".")
		text = strings.TrimPrefix(strings.TrimPrefix(text, "sqlite: "), "postgres: ")
		if !strings.HasSuffix(text, "?") {
			text += "."
		}
		return "Cannot " + st.Doing, words.UpperFirst(text)
	case errors.As(err, &locked):
		return "State file is in use", fmt.Sprintf("%s is held by %s. Wait until that command ends, or stop it. "+
			"Commands that read runs or send verbs to them (`engine list`, `show`, `cancel`, …) and `engine apply --detach` work meanwhile.", locked.Path, locked.Holder)
	case errors.As(err, &schema):
		return explainSchema(schema)
	case errors.Is(err, fs.ErrNotExist):
		return "No such file or directory", words.UpperFirst(err.Error()) + "."
	case errors.Is(err, fs.ErrPermission):
		return "Permission denied", words.UpperFirst(err.Error()) + "."
	}
	return words.UpperFirst(err.Error()), ""
}

func explainSchema(e *store.SchemaError) (summary, detail string) {
	switch {
	case e.Have == 0:
		summary = "Database has no engine schema"
	case e.Have > e.Want:
		summary = "Database is newer than this engine"
		detail = fmt.Sprintf("Its schema has version %d, this engine knows %d. ", e.Have, e.Want)
	default:
		summary = "Database must be migrated"
		detail = fmt.Sprintf("Its schema has version %d, this engine needs %d. ", e.Have, e.Want)
	}
	return summary, detail + words.UpperFirst(strings.TrimSuffix(e.Hint, ".")) + "."
}
