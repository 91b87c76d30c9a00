package value

import (
	"time"

	"github.com/zclconf/go-cty/cty"

	"github.com/saga-engine/engine/dsl/span"
)

// SpanOf converts a value to a duration. It returns span.ErrFormat if the value is not a string.
func SpanOf(v cty.Value) (time.Duration, error) {
	s, err := StringOf(v)
	if err != nil {
		return 0, span.ErrFormat
	}
	return span.Parse(s)
}
