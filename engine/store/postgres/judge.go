package postgres

import (
	"errors"
	"strings"

	"github.com/lib/pq"
	"github.com/lib/pq/pqerror"
)

// A verdict says what an error means for the transitions that were sent.
type verdict int

const (
	unknown   verdict = iota + 1 // they may have landed
	taken                        // nothing landed: a key of the batch is taken
	refused                      // nothing landed: a row is impossible
	suspected                    // nothing landed: a row may be to blame, or the server
	later                        // nothing landed: the server as a whole cannot, for now
	failed                       // nothing landed, and the same will not land
)

// judge sorts errors by SQLSTATE. What the server did not say is unknown.
func judge(err error) verdict {
	var e *pq.Error
	if !errors.As(err, &e) || len(e.Code) != 5 || e.Severity == pqerror.SeverityPanic { // a server that ends in the midst of a commit
		return unknown
	}
	state := string(e.Code)
	switch class := state[:2]; {
	case class == "08", state == "57P01", state == "57P02", state == "57P03":
		return unknown
	case state == "23505", state == "23502" && e.Table == "context": // see commitKeyed
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

// temporary reports whether a connection that failed is worth another attempt.
func temporary(err error) bool {
	var wrong *WrongServerError
	v := judge(err)
	return !errors.As(err, &wrong) && (v == unknown || v == later)
}
