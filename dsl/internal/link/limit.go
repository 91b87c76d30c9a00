package link

import (
	"errors"
	"strings"
	"time"

	"github.com/zclconf/go-cty/cty"

	"github.com/saga-engine/engine/dsl/internal/noun"
	"github.com/saga-engine/engine/dsl/internal/value"
	"github.com/saga-engine/engine/dsl/span"
)

// errLimit says that a text is not a deadline, and shows how to write a deadline.
var errLimit = errors.New(`a deadline is a duration such as "90s", "36h" or "2d", or a time such as "2030-01-31T18:00:00Z"`)

// parseLimit parses a deadline: a duration such as "36h", or a time as in RFC 3339.
func parseLimit(s string) (noun.Limit, error) {
	if strings.Contains(s, "T") && strings.Contains(s, "-") {
		at, err := time.Parse(time.RFC3339, s)
		if err != nil {
			return noun.Limit{}, errInstant
		}
		return noun.Limit{At: at}, nil
	}
	after, err := span.Parse(s)
	if errors.Is(err, span.ErrFormat) {
		err = errLimit
	}
	return noun.Limit{After: after}, err
}

// limitOf converts a value to a deadline. It returns an error if the value is not a deadline.
func limitOf(v cty.Value) (noun.Limit, error) {
	s, err := value.StringOf(v)
	if err != nil {
		return noun.Limit{}, errLimit
	}
	return parseLimit(s)
}

// errInstant says that a text is not a point in time, and shows how to write one.
var errInstant = errors.New(`a point in time is written as in RFC 3339, such as "2030-01-31T18:00:00Z"`)
