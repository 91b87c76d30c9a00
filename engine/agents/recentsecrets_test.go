package agents

import (
	"fmt"
	"strings"
	"testing"
	"testing/synctest"
	"time"
)

// What calls knew in confidence is taken out of lines that come up to a minute after
// their end, however many calls have ended since (T22). Beyond what is remembered no
// line is shown.
func TestRecentSecrets(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		book := &callBook{}
		call := func(step, secret string) {
			f := &bookedCall{knownCall: knownCall{run: 1, tag: callTag{"r", step, 1}, secrets: []string{secret}}}
			book.begin(f)
			book.end(f, time.Now())
		}
		call("s", "hunter2hunter2")
		for i := range 3 * maxEnded {
			call(fmt.Sprint("t", i), "another-secret")
		}
		says := func() (printed, stray string) {
			const line = "it said hunter2hunter2"
			_, scrub := book.printedDuring(0, time.Now(), nil)
			return scrub(line), book.stray()(line)
		}
		if printed, stray := says(); printed != "it said (sensitive)" || stray != "it said (sensitive)" {
			t.Errorf("right after the calls: %q, %q", printed, stray)
		}
		time.Sleep(secretsKept - time.Second)
		if printed, stray := says(); printed != "it said (sensitive)" || stray != "it said (sensitive)" {
			t.Errorf("a minute later: %q, %q", printed, stray)
		}
		for i := range maxRecentSecrets + 1 {
			call("u", fmt.Sprintf("secret-%d", i))
		}
		if printed, stray := says(); printed != notShown || stray != notShown {
			t.Errorf("with too many secrets: %q, %q", printed, stray)
		}
		time.Sleep(2 * secretsKept)
		call("v", "and-another")
		if printed, _ := says(); !strings.Contains(printed, "it said") {
			t.Errorf("when they are forgotten: %q", printed)
		}
		if len(book.recent.texts) > 1 || book.recent.bytes != len("and-another") {
			t.Errorf("%d texts of %d bytes are remembered, want one", len(book.recent.texts), book.recent.bytes)
		}
	})
}
