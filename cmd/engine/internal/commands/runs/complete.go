package runs

import (
	"context"
	"io"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/saga-engine/engine/cmd/engine/internal/cli"
	"github.com/saga-engine/engine/cmd/engine/internal/session"
	"github.com/saga-engine/engine/cmd/engine/internal/words"
	"github.com/saga-engine/engine/cmd/engine/render"
	"github.com/saga-engine/engine/engine/store"
)

const (
	// completePatience is how long completeRuns waits for the state. After that it offers no runs.
	completePatience = 2 * time.Second
	// maxCompleted is the largest number of runs whose names completeRuns reads. It reads the
	// newest runs.
	maxCompleted = 200
)

// completeRuns returns the names of runs for the completion in a shell: names that begin with the
// parameter `typed`, the text that the user has typed so far. If the state does not exist or does
// not answer, it returns none. It prints no message, because a message would appear in the middle
// of what the user types.
func completeRuns(a *cli.App, cmd *cobra.Command, args []string, typed string) ([]string, cobra.ShellCompDirective) {
	if len(args) > 0 || a.Prepare(cmd, nil) != nil {
		return nil, cobra.ShellCompDirectiveNoFileComp
	}
	a.Stderr = io.Discard
	ctx, cancel := context.WithTimeout(cmd.Context(), completePatience)
	defer cancel()
	s, err := session.OpenReader(ctx, a, ".", ".")
	if err != nil {
		return nil, cobra.ShellCompDirectiveNoFileComp
	}
	defer s.Close()
	rows, err := s.Store.Runs(ctx, store.RunFilter{Limit: maxCompleted})
	if err != nil {
		return nil, cobra.ShellCompDirectiveNoFileComp
	}
	var names []string
	for _, r := range rows {
		if name := render.Clean(r.Name); strings.HasPrefix(name, typed) {
			names = append(names, name+"\t"+words.Join(" ", r.WorkflowName, r.State.String(), render.Clean(r.Key)))
		}
	}
	return names, cobra.ShellCompDirectiveNoFileComp | cobra.ShellCompDirectiveKeepOrder
}

// takesRun makes shells complete the argument RUN of cmd with the names of runs. It returns cmd.
func takesRun(a *cli.App, cmd *cobra.Command) *cobra.Command {
	cmd.ValidArgsFunction = func(cmd *cobra.Command, args []string, typed string) ([]string, cobra.ShellCompDirective) {
		return completeRuns(a, cmd, args, typed)
	}
	return cmd
}
