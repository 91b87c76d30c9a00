package naming

import (
	"strings"
	"testing"
)

// A run's name is plain; a unique key is any text.
func TestNamesValidate(t *testing.T) {
	long := strings.Repeat("x", MaxNameLen)
	for _, name := range []string{"", "a", "7", "r-1X", "r-", "r-0x", "order/2026:A_b.c-d", long} {
		if err := (Names{Name: name, Workflow: "w", Key: "we ird é'\n"}).Validate(); err != nil {
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

func TestCleanText(t *testing.T) {
	for in, want := range map[string]string{"": "", "é\n": "é\n", "a\x00b": "a\uFFFDb", "\xff\xfe": "\uFFFD", "ok\xed\xa0\x80": "ok\uFFFD"} {
		if got := CleanText(in); got != want {
			t.Errorf("CleanText(%q) = %q, want %q", in, got, want)
		}
	}
}
