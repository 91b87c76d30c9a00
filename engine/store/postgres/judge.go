package postgres

import (
	"errors"
	"strings"

	"github.com/lib/pq"
	"github.com/lib/pq/pqerror"

	"github.com/saga-engine/engine/engine/store"
	"github.com/saga-engine/engine/engine/store/admission"
	"github.com/saga-engine/engine/engine/store/naming"
)

// A verdict says what an error means for the transitions that were sent.
type verdict int

const (
	unknown   verdict = iota + 1 // the transitions may be committed or not
	taken                        // nothing is committed: a row number, name, key or id of the batch is in use
	refused                      // nothing is committed: a row is invalid
	suspected                    // nothing is committed: either a row or the server is the reason
	later                        // nothing is committed: the server does not work at present
	failed                       // nothing is committed, and trying again does not help
)

// judge returns the verdict for an error. The verdict depends on the SQLSTATE of the error. The
// verdict is `unknown` if the error does not come from the server, or if the connection or the
// server has failed.
func judge(err error) verdict {
	var e *pq.Error
	// A PANIC may stop the server during a commit, so the outcome of the commit is unknown.
	if !errors.As(err, &e) || len(e.Code) != 5 || e.Severity == pqerror.SeverityPanic {
		return unknown
	}
	state := string(e.Code)
	switch class := state[:2]; {
	case class == "08", state == "57P01", state == "57P02", state == "57P03":
		return unknown
	case state == "23505", state == "23502" && e.Table == "context": // 23502: a key is in use, so commitKeyed set NULL
		return taken
	case class == "22", class == "23", class == "54":
		return refused
	case class == "XX", class == "P0", class == "21", class == "38", class == "39", class == "44", state == "42501":
		return suspected
	case class == "40", class == "53", class == "57", class == "58", state == "55P03", strings.HasPrefix(state, "25P"),
		state == "25006", state == "26000", state == "42P05", state == "0A000" && strings.Contains(e.Message, "during recovery"):
		return later
	}
	return failed
}

// temporary reports whether a failure to connect may go away, so that the caller should try
// again. It returns false for a WrongServerError.
func temporary(err error) bool {
	var wrong *WrongServerError
	v := judge(err)
	return !errors.As(err, &wrong) && (v == unknown || v == later)
}

// errRefused says that the store refuses a submission or an admission because of its contents.
var errRefused = errors.New("postgres: submission refused")

// answers reports whether an error is the outcome of a transition. Any other error is a failure:
// the transition may be tried again.
func answers(err error) bool {
	var refusal *admission.Error
	if errors.As(err, &refusal) {
		return true
	}
	for _, known := range []error{store.ErrFenced, store.ErrExists, store.ErrStale, naming.ErrFull, naming.ErrFree, naming.ErrNoOrigin, errRefused} {
		if errors.Is(err, known) {
			return true
		}
	}
	var heir *naming.HeirError
	return errors.As(err, &heir)
}
