package call

import (
	"testing"
)

func TestRedactor(t *testing.T) {
	tests := []struct {
		name    string
		secrets []string
		text    string
		want    string
	}{
		{"nothing sensitive", nil, "card 4111", "card 4111"},
		{"every place", []string{"s3cret"}, "s3cret and s3cret", "(sensitive) and (sensitive)"},
		{"too short to tell", []string{"abc"}, "abcdef", "abcdef"},
		{"the longer first", []string{"pass", "password"}, "password pass", "(sensitive) (sensitive)"},
		{"as JSON writes it", []string{"a\"b\nc"}, `got "a\"b\nc"`, `got "(sensitive)"`},
		{"as JSON escapes it", []string{"a<b>&c"}, `got "a\u003cb\u003e\u0026c"`, `got "(sensitive)"`},
		{"not text", nil, "a\xffb", "a�b"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			if got := (&redactor{secrets: tt.secrets}).text(tt.text); got != tt.want {
				t.Errorf("text = %q, want %q", got, tt.want)
			}
		})
	}
}
