package verbs

import (
	"strings"
	"testing"

	"github.com/spf13/cobra"
)

// A refusal names the whole command, so that a person can copy it.
func TestGiven(t *testing.T) {
	for name, c := range map[string]struct {
		args []string
		want string
	}{
		"none":     {[]string{"--step", "s"}, ""},
		"flags":    {[]string{"--not-done", "--step", "s", "--reason", "it's late", "--json"}, `--not-done --reason 'it'\''s late'`},
		"false":    {[]string{"--not-done=false", "--reason="}, "--not-done=false --reason ''"},
		"large":    {[]string{"--output", `"` + strings.Repeat("x", maxGiven) + `"`}, "--output @FILE"},
		"all sent": {[]string{"--output", "@out.json"}, "--output @out.json"},
	} {
		t.Run(name, func(t *testing.T) {
			root := &cobra.Command{Use: "engine"}
			root.PersistentFlags().Bool("json", false, "")
			got := "not run"
			cmd := &cobra.Command{Use: "settle", Run: func(cmd *cobra.Command, _ []string) { got = Given(cmd) }}
			root.AddCommand(cmd)
			cmd.Flags().String("step", "", "")
			cmd.Flags().String("output", "", "")
			cmd.Flags().String("reason", "", "")
			cmd.Flags().Bool("not-done", false, "")
			root.SetArgs(append([]string{"settle"}, c.args...))
			if err := root.Execute(); err != nil || got != c.want {
				t.Errorf("got %q, %v, want %q", got, err, c.want)
			}
		})
	}
}
