package verbs

import (
	"errors"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
)

// A Span is the value of a flag: a duration above zero, such as 90s, 2h or 1d.
type Span time.Duration

var _ pflag.Value = (*Span)(nil)

// String returns the duration as text; "" = it is not set.
func (s *Span) String() string {
	if *s == 0 {
		return ""
	}
	return time.Duration(*s).String()
}

// Set parses text as a duration, and stores the duration in s. A number of days may come before
// other units, such as in 1d12h.
func (s *Span) Set(text string) error {
	days, rest, inDays := strings.Cut(text, "d")
	n, err := 0, error(nil)
	if inDays {
		n, err = strconv.Atoi(days)
	} else {
		rest = text
	}
	d := time.Duration(0)
	if err == nil && rest != "" {
		d, err = time.ParseDuration(rest)
	}
	if err != nil || n < 0 || n > maxSpanDays || d < 0 || n == 0 && d == 0 {
		return errSpan
	}
	*s = Span(time.Duration(n)*24*time.Hour + d)
	return nil
}

// maxSpanDays is the highest number of days in a Span. With this limit, a Span cannot overflow
// time.Duration.
const maxSpanDays = 36500

var errSpan = errors.New("must be a duration above zero, such as 90s, 2h or 1d")

// Type returns the name that help texts show for the flag's value.
func (s *Span) Type() string { return "duration" }

// ExtendFlag adds the flag --extend to the command cmd. The flag stores its value in *to.
func ExtendFlag(cmd *cobra.Command, to *Span) {
	cmd.Flags().Var(to, "extend", "new deadline of the run, this long from now, such as 90s, 2h, 1d")
}
