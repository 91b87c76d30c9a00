package agents

import (
	"log/slog"
	"strings"
	"testing"

	"github.com/saga-engine/engine/dsl/secret"
	"github.com/saga-engine/engine/engine/store"
)

// A secret that contains another one is replaced as a whole, whoever of the two
// belongs to which call or to the configuration.
func TestSecretThatContainsAnother(t *testing.T) {
	const inner, outer = "fish", "sw0rd-fish-and-chips"
	call := func(run, key string) *bookedCall {
		secrets := []string{key}
		return &bookedCall{knownCall: knownCall{
			run: 1, tag: callTag{run, "s", 1}, process: 1, scrub: secret.Redactor(secrets), secrets: secrets,
		}}
	}
	for name, test := range map[string]struct {
		config []string
		calls  []*bookedCall
		attrs  []any
	}{
		"of two calls":                           {nil, []*bookedCall{call("r", inner), call("q", outer)}, []any{"stream", "stderr"}},
		"of two calls, the other way round":      {nil, []*bookedCall{call("q", outer), call("r", inner)}, []any{"stream", "stderr"}},
		"of the configuration in a call's":       {[]string{inner}, []*bookedCall{call("r", outer)}, []any{"run", "r", "step", "s", "attempt", 1}},
		"of the configuration in a printed line": {[]string{inner}, []*bookedCall{call("r", outer)}, []any{"stream", "stderr"}},
		"of the configuration and nothing else":  {[]string{inner, outer}, nil, nil},
		"of a call and not of the configuration": {nil, []*bookedCall{call("r", outer)}, []any{"run", "r", "step", "s", "attempt", 1}},
		"of a call, within the configuration's":  {[]string{outer}, []*bookedCall{call("r", inner)}, []any{"stream", "stderr"}},
	} {
		t.Run(name, func(t *testing.T) {
			var (
				b    callBook
				text strings.Builder
				sunk []string
			)
			for _, f := range test.calls {
				b.begin(f)
			}
			log := slog.New(&tagged{
				next: slog.NewTextHandler(&text, nil), book: &b, process: 1, secrets: test.config, redact: secret.Redactor(test.config),
				sink: func(l store.LogLine) { sunk = append(sunk, l.Message) },
			})
			log.Info("key "+outer+" refused", append([]any{"detail", outer}, test.attrs...)...)
			for _, s := range append(sunk, text.String()) {
				if strings.Contains(s, "sw0rd") || strings.Contains(s, "chips") || strings.Count(s, "(sensitive)") != 2 {
					t.Errorf("logged %q", s)
				}
			}
		})
	}
}

// A sensitive number is removed from a log line, although JSON has it without quotes. So is a
// sensitive text that is the name of an attribute.
func TestSensitiveNumbersAndNames(t *testing.T) {
	var text strings.Builder
	log := slog.New(&tagged{
		next: slog.NewTextHandler(&text, nil), book: new(callBook), redact: secret.Redactor([]string{"123456789", "hunter2"}),
		secrets: []string{"123456789", "hunter2"},
	})
	log.Info("x", "float", 123456789.0, "int", 123456789, "uint", uint64(123456789), "hunter2", 1, slog.Group("hunter2", "n", 123456789), "other", 42.5)
	got := text.String()
	if strings.Contains(got, "123456789") || strings.Contains(got, "e+08") || strings.Contains(got, "hunter2") || !strings.Contains(got, "other=42.5") {
		t.Errorf("logged %s", got)
	}
}
