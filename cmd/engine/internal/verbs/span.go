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

// String formats the duration; "" if it is not set.
func (s *Span) String() string {
	if *s == 0 {
		return ""
	}
	return time.Duration(*s).String()
}

// Set reads the duration.
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

// maxSpanDays is the highest number of days. It keeps the sum below the largest
// time.Duration.
const maxSpanDays = 36500

var errSpan = errors.New("must be a duration above zero, such as 90s, 2h or 1d")

// Type names the kind of value in help texts.
func (s *Span) Type() string { return "duration" }

// ExtendFlag adds --extend.
func ExtendFlag(cmd *cobra.Command, to *Span) {
	cmd.Flags().Var(to, "extend", "new deadline of the run, this long from now, such as 90s, 2h, 1d")
}
