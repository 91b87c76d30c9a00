package dsl

import "testing"

// Secrets are replaced longest first: one may contain another.
func TestRedactor(t *testing.T) {
	for _, test := range []struct {
		secrets    []string
		text, want string
	}{
		{nil, "hunter2", "hunter2"},
		{[]string{"hunter2"}, "a hunter2 b", "a (sensitive) b"},
		{[]string{"hunt", "hunter2"}, "hunter2 hunt", "(sensitive) (sensitive)"},
		{[]string{"hunter2", "hunt"}, "hunter2 hunt", "(sensitive) (sensitive)"},
		{[]string{"hunter2", "hunter2"}, "hunter2", "(sensitive)"},
		{[]string{"abc"}, "abc", "abc"}, // too short: it is found everywhere
		{[]string{"a\"b\nc"}, `{"x":"a\"b\nc"}`, `{"x":"(sensitive)"}`},
		{[]string{"a\x00bc"}, `"a\x00bc" "a\u0000bc"`, `"(sensitive)" "(sensitive)"`},
		{[]string{"postgres://u:hunter2@h", "hunter2"}, "postgres://u:hunter2@h hunter2", "(sensitive) (sensitive)"},
	} {
		if got := Redactor(test.secrets)(test.text); got != test.want {
			t.Errorf("Redactor(%q)(%q) = %q, want %q", test.secrets, test.text, got, test.want)
		}
	}
}
