package naming

import (
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/saga-engine/engine/engine/machine/status"
)

// A run's name is plain; a unique key is any text without control characters.
func TestNamesValidate(t *testing.T) {
	long := strings.Repeat("x", MaxNameLen)
	for _, name := range []string{"", "a", "7", "r-1X", "r-", "r-0x", "order/2026:A_b.c-d", long} {
		if err := (Names{Name: name, Workflow: "w", Key: "we ird é'"}).Validate(); err != nil {
			t.Errorf("%q: %v", name, err)
		}
	}
	for _, name := range []string{" ", "we ird", "-a", "--all", "/a", ".a", "_a", ":a", "a\n", "a\x00", "\xff", "é", "a;b", "a'b", "a%b", "a\\b", "$a", "a*", "\x1b[31m", long + "x", "r-1x"} {
		err := (Names{Name: name, Workflow: "w"}).Validate()
		if err == nil || !strings.Contains(err.Error(), "run name") {
			t.Errorf("%q: error=%v, want one about the run name", name, err)
		}
	}
}

// S98: a unique key that nobody can read or type is refused at the edge, with an error that
// callers can test for.
func TestUniqueKeysWithoutControlCharacters(t *testing.T) {
	for _, key := range []string{"a\n", "\x00", "\t", "a\x7fb", "\u0085", "\xff", strings.Repeat("x", MaxKeyBytes+1), strings.Repeat("é", MaxKeyBytes/2+1)} {
		if err := (Names{Workflow: "w", Key: key}).Validate(); !errors.Is(err, ErrKey) || !strings.Contains(err.Error(), "unique key") {
			t.Errorf("%q: error=%v, want ErrKey", key, err)
		}
	}
	if err := (Names{Workflow: "w", Key: strings.Repeat("é", MaxKeyBytes/2)}).Validate(); err != nil {
		t.Error(err)
	}
}

// S97 S98: which run holds its key, by scope.
func TestHolds(t *testing.T) {
	ended := time.Date(2026, 3, 1, 0, 0, 0, 0, time.UTC)
	for _, c := range []struct {
		h     KeyScope
		state status.RunState
		reset bool
		after time.Duration
		want  bool
	}{
		{KeyScope{ScopeActive, 0}, status.RunQueued, false, 0, true},
		{KeyScope{ScopeActive, 0}, status.RunParked, true, 0, true}, // a reset frees only ended runs
		{KeyScope{ScopeActive, 0}, status.RunSucceeded, false, 0, false},
		{KeyScope{ScopeActive, 0}, status.RunCancelled, false, 0, false},
		{KeyScope{}, status.RunCompensationFailed, false, 0, true},
		{KeyScope{}, status.RunSucceeded, false, time.Hour, true},
		{KeyScope{}, status.RunSucceeded, true, time.Hour, false},
		{KeyScope{}, status.RunCompensated, false, 0, false},
		{KeyScope{}, status.RunFailed, false, 0, false},
		{KeyScope{ScopeGoal, time.Hour}, status.RunSucceeded, false, time.Hour - 1, true},
		{KeyScope{ScopeGoal, time.Hour}, status.RunSucceeded, false, time.Hour, false},
		{KeyScope{ScopeEver, 0}, status.RunCancelled, false, time.Hour, true},
	} {
		if got := c.h.Holds(c.state, ended, c.reset, ended.Add(c.after)); got != c.want {
			t.Errorf("%+v: holds = %v", c, got)
		}
	}
	for _, h := range []KeyScope{{3, 0}, {-1, 0}, {0, -1}, {0, 1}, {0, MaxRetain + time.Microsecond}} {
		if (Names{Workflow: "w", Key: "k", KeyScope: h}).Validate() == nil {
			t.Errorf("%+v is valid", h)
		}
	}
}

func TestCleanText(t *testing.T) {
	for in, want := range map[string]string{"": "", "é\n": "é\n", "a\x00b": "a\uFFFDb", "\xff\xfe": "\uFFFD", "ok\xed\xa0\x80": "ok\uFFFD"} {
		if got := CleanText(in); got != want {
			t.Errorf("CleanText(%q) = %q, want %q", in, got, want)
		}
	}
}
