package cli

import (
	"strings"
	"testing"

	"github.com/spf13/cobra"
)

// Names in brackets are optional, and a name that ends in "…" may be repeated.
func TestWants(t *testing.T) {
	for _, c := range []struct {
		names, args string
		want        string // "" = accepted
	}{
		{"", "", ""},
		{"", "x", `does not take "x"`},
		{"RUN", "", "needs RUN"},
		{"RUN", "a", ""},
		{"RUN", "a b", `does not take "b"`},
		{"NAME [ACTION]", "a", ""},
		{"NAME [ACTION]", "a b c", `does not take "c"`},
		{"[PATH…]", "", ""},
		{"[PATH…]", "a b c", ""},
	} {
		err := Wants(strings.Fields(c.names)...)(&cobra.Command{Use: "x"}, strings.Fields(c.args))
		if (err == nil) != (c.want == "") || err != nil && !strings.Contains(err.Error(), c.want) {
			t.Errorf("%q with %q: %v, want %q", c.names, c.args, err, c.want)
		}
	}
}

// A flag that does not exist is answered with the one that was probably meant. Hidden
// flags are not offered.
func TestFlagError(t *testing.T) {
	cmd := &cobra.Command{Use: "x"}
	cmd.Flags().Bool("strict", false, "")
	cmd.Flags().Bool("secret", false, "")
	if err := cmd.Flags().MarkHidden("secret"); err != nil {
		t.Fatal(err)
	}
	for flag, want := range map[string]string{
		"--strct":     `Did you mean "--strict"?`,
		"--secre":     `no flag "--secre". Run`,
		"--strict=it": "Invalid flag",
	} {
		err := FlagError(cmd, cmd.ParseFlags([]string{flag}))
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v, want %q", flag, err, want)
		}
	}
}

// A path of the command line is relative to --chdir.
func TestPath(t *testing.T) {
	for _, c := range []struct{ chdir, path, want string }{
		{"", "a/b", "a/b"},
		{"dir", "a/b", "dir/a/b"},
		{"dir", "/a/b", "/a/b"},
	} {
		if got := (&App{Chdir: c.chdir}).Path(c.path); got != c.want {
			t.Errorf("--chdir %q: %s is %s, want %s", c.chdir, c.path, got, c.want)
		}
	}
}

// Flags win over the environment, and colours depend on both.
func TestColor(t *testing.T) {
	var out strings.Builder
	for _, c := range []struct {
		noColor bool
		env     map[string]string
		want    bool
	}{
		{false, nil, false}, // not a terminal
		{false, map[string]string{"CLICOLOR_FORCE": "1"}, true},
		{false, map[string]string{"CLICOLOR_FORCE": "0"}, false},
		{false, map[string]string{"CLICOLOR_FORCE": "1", "NO_COLOR": "1"}, false},
		{true, map[string]string{"CLICOLOR_FORCE": "1"}, false},
	} {
		a := &App{NoColor: c.noColor, Lookup: func(name string) (string, bool) { v, ok := c.env[name]; return v, ok }}
		if got := a.Color(&out); got != c.want {
			t.Errorf("--no-color %t, %v: %t, want %t", c.noColor, c.env, got, c.want)
		}
	}
}
