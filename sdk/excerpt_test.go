package sdk

import (
	"context"
	"encoding/json"
	"strings"
	"testing"
	"time"
)

// A text is never cut in the middle of a value, of which nothing but the whole
// would be recognised and replaced.
func TestExcerpt(t *testing.T) {
	const secret = "sw0rd-fish"
	c := &Call{
		input:  json.RawMessage(`{"headers":{"Authorization":"Bearer ` + secret + `"},"body":"a \"quoted\" text"}`),
		config: json.RawMessage(`{"dsn":"postgres://u:hunter22@h/db"}`),
	}
	for name, test := range map[string]struct {
		text string
		n    int
		want string
	}{
		"short":                   {"denied " + secret, 100, "denied " + secret},
		"cut before the secret":   {"denied " + secret, 6, "denied"},
		"cut in the secret":       {"denied: " + secret + " is wrong", 12, "denied:"},
		"cut after the secret":    {"denied: " + secret + " is wrong, and so on", 24, "denied: " + secret + " is wr"},
		"cut right behind it":     {"denied: " + secret + " is wrong", 18, "denied: " + secret},
		"in the configuration":    {"login with hunter22 failed", 16, "login with "},
		"as it stands in JSON":    {`no: a \"quoted\" text, is it`, 12, "no: "},
		"three bytes are no part": {"denied: " + secret, 10, "denied: sw"},
		"between characters":      {"ääää", 5, "ää"},
		"not UTF-8":               {"a\xffb", 5, "ab"},
		"nothing":                 {"abc", 0, ""},
	} {
		t.Run(name, func(t *testing.T) {
			if got := c.Excerpt(test.text, test.n); got != test.want {
				t.Errorf("Excerpt = %q, want %q", got, test.want)
			}
		})
	}
	for text, want := range map[string]string{
		"wrong: " + secret + " denied": " denied",
		secret + " denied":             secret + " denied",
		"denied":                       "denied",
		"ä denied 1234567890":          "ied 1234567890",
	} {
		n := 14
		if text == secret+" denied" {
			n = len(text)
		}
		if got := c.ExcerptEnd(text, n); got != want {
			t.Errorf("ExcerptEnd(%q) = %q, want %q", text, got, want)
		}
	}
	if got := c.ExcerptEnd("ääää", 3); got != "ä" {
		t.Errorf("ExcerptEnd = %q", got)
	}
}

// The SDK's own limit on messages does not cut a value either.
func TestMessageIsNotCutInAValue(t *testing.T) {
	a := New("a", "1.0.0")
	type in struct {
		Token string `agent:"token"`
	}
	Action(a, "fail", func(_ context.Context, _ *Call, in in) (None, error) {
		return None{}, &Failure{Code: CodeDenied, Message: strings.Repeat("x", maxMessage-5) + in.Token}
	})
	reply, ok := a.Invoke(t.Context(), Request{
		Action: "fail", Purpose: PurposeDo, Input: json.RawMessage(`{"token":"sw0rd-fish"}`), CompleteBy: time.Now().Add(time.Minute),
	}, InvokeOptions{})
	if want := strings.Repeat("x", maxMessage-5); !ok || reply.Message != want {
		t.Errorf("message of %d bytes ends with %q", len(reply.Message), reply.Message[len(reply.Message)-10:])
	}
}
