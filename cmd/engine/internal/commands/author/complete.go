package author

import (
	"context"
	"io"
	"maps"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/saga-engine/engine/cmd/engine/internal/cli"
	"github.com/saga-engine/engine/cmd/engine/internal/module"
	"github.com/saga-engine/engine/cmd/engine/internal/words"
	"github.com/saga-engine/engine/cmd/engine/render"
)

// completePatience is how long completeAgents waits for the agents to describe themselves.
const completePatience = 2 * time.Second

// completeAgents returns the values that a shell offers for the argument NAME or ACTION of `engine
// agents schema`, with their documentation. The values for NAME are the installed agents, and the
// agents of the module whose plugin is installed. The values for ACTION are the actions of the
// agent NAME. Each value begins with the parameter `typed`, the text that the user has typed so
// far. The function prints no message, because a message would appear in the middle of what the
// user types.
func completeAgents(ctx context.Context, a *cli.App, cmd *cobra.Command, args []string, typed string, f module.AgentFlags) []string {
	if len(args) > 1 || a.Prepare(cmd, nil) != nil {
		return nil
	}
	a.Stderr = io.Discard
	ctx, cancel := context.WithTimeout(ctx, completePatience)
	defer cancel()
	catalog, err := lockedCatalog(a, ".", f)
	if err != nil {
		return nil
	}
	docs := map[string]string{}
	if len(args) == 0 {
		all, err := catalog.List(ctx)
		if err != nil {
			return nil
		}
		for _, l := range all {
			docs[l.Name] = words.Join(" ", l.Version, l.Schema.Doc)
		}
		installed := maps.Clone(docs)
		for name, plugin := range module.Plugins(a, ".") {
			if doc, ok := installed[plugin]; ok {
				docs[name] = doc
			}
		}
	} else if b, err := module.Agent(ctx, a, ".", args[0], catalog); err == nil {
		for name, action := range b.Schema.Actions {
			docs[name] = action.Doc
		}
	}
	var out []string
	for _, name := range words.Sorted(docs) {
		if strings.HasPrefix(name, typed) {
			out = append(out, words.Join("\t", name, render.Clean(docs[name])))
		}
	}
	return out
}
