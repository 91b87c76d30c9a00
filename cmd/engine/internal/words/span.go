package words

import (
	"errors"
	"time"

	"github.com/saga-engine/engine/dsl/span"
)

// A SpanFlag is the value of a flag that is a duration. It accepts the same texts for a duration as
// a workflow, such as "90s", "36h" or "2d". For any other text it returns the same error as for a
// workflow.
type SpanFlag struct {
	to   *time.Duration
	zero bool // true = the flag may also be 0
}

// Span returns the value of a flag that stores its duration in *to. The flag refuses the
// duration 0.
func Span(to *time.Duration) *SpanFlag { return &SpanFlag{to: to} }

// SpanOrZero returns the value of a flag that stores its duration in *to. The duration may be
// 0. The parameter `def` is the duration that counts if the flag is not given.
func SpanOrZero(to *time.Duration, def time.Duration) *SpanFlag {
	*to = def
	return &SpanFlag{to: to, zero: true}
}

// String returns the duration as text; "" = it is zero.
func (f *SpanFlag) String() string {
	if f.to == nil || *f.to == 0 {
		return ""
	}
	return span.Text(*f.to)
}

// Set parses text as a duration, and stores it.
func (f *SpanFlag) Set(text string) error {
	d, err := span.Parse(text)
	if f.zero && (text == "0" || errors.Is(err, span.ErrZero)) {
		d, err = 0, nil
	}
	if err != nil {
		return err
	}
	*f.to = d
	return nil
}

// Type returns the name that help texts show for the flag's value.
func (f *SpanFlag) Type() string { return "duration" }
