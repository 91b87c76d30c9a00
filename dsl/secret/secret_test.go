package secret

import (
	"strings"
	"testing"

	"github.com/saga-engine/engine/dsl/internal/value"
)

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

// What is left of a sensitive text where a text was cut is replaced as well.
func TestRedactorOfCutTexts(t *testing.T) {
	const hidden = "s3cr\"t-of-the-shop"
	redact := Redactor([]string{hidden, "aaaaaaab", "geheim-ä"})
	for text, want := range map[string]string{
		"it said s3cr\"t-of":                  "it said (sensitive)",
		"it said s3cr\"t-of…":                 "it said (sensitive)…",
		"it said s3cr\"t-…\nand s3cr\"t-of-t": "it said (sensitive)…\nand (sensitive)",
		`exited; it said: "s3cr\"t-o…"`:       `exited; it said: "(sensitive)…"`,
		`{"msg":"s3cr\"t-of-the-sho`:          `{"msg":"(sensitive)`,
		"it said geheim-\ufffd":               "it said (sensitive)\ufffd",
		"baaaaaaaaaa":                         "baaa(sensitive)",
		"it said s3c":                         "it said s3c",
		"s3cr is no cut text":                 "s3cr is no cut text",
		"all of it: " + hidden:                "all of it: (sensitive)",
		"":                                    "",
	} {
		if got := redact(text); got != want {
			t.Errorf("%q: got %q, want %q", text, got, want)
		}
	}
	long := strings.Repeat("a", 1<<20)
	if got := Redactor([]string{long + "b"})(long); got != "(sensitive)" {
		t.Errorf("a long text is %d bytes", len(got))
	}
}

func TestReservedEnv(t *testing.T) {
	for name, want := range map[string]bool{
		"ENGINE_DSN": true, "ENGINE_ENCRYPTION_KEY": true, "ENGINE_VAR_x": true, "PGPASSWORD": true, "PGPASSFILE": true,
		"PGSERVICEFILE": true, "pgpassword": true, "Engine_Dsn": true,
		"ENGINEER": false, "HOME": false, "PAGER": false, "MY_PGPASSWORD": false, "": false,
	} {
		if got := ReservedEnv(name); got != want {
			t.Errorf("ReservedEnv(%q) = %t", name, got)
		}
	}
}

// A secret finds its place, whatever the names on the way to it hold.
func TestResolveSecretPlaces(t *testing.T) {
	v := value.NewValue([]byte(`{"a~1b":null,"a/b":"x","~0":[null]}`), nil, []value.Secret{
		{Path: "/a~01b", Parts: []value.SecretPart{{Ref: "env:A"}}}, {Path: "/~00/0", Parts: []value.SecretPart{{Ref: "env:B"}}},
	})
	full, err := Resolve(v, func(ref string) (string, error) { return ref, nil })
	if want := `{"a/b":"x","a~1b":"env:A","~0":["env:B"]}`; err != nil || string(full) != want {
		t.Errorf("%s, %v; want %s", full, err, want)
	}
}
