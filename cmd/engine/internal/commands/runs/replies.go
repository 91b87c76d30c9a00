package runs

import (
	"context"
	"strconv"

	"github.com/spf13/cobra"

	"github.com/saga-engine/engine/cmd/engine/internal/cli"
	"github.com/saga-engine/engine/cmd/engine/internal/session"
	"github.com/saga-engine/engine/cmd/engine/internal/words"
	"github.com/saga-engine/engine/cmd/engine/render"
	"github.com/saga-engine/engine/engine/store/replies"
)

// mostReplies is the largest value of --limit of the command replies.
const mostReplies = 1000

// Replies returns the command `engine replies`, which shows or takes the replies in a queue.
func Replies(a *cli.App) *cobra.Command {
	var take bool
	limit := 100
	cmd := &cobra.Command{
		Use:   "replies QUEUE",
		Short: "Show or take the replies of runs in a queue",
		Long: `Shows the replies that wait in the queue QUEUE: those of runs that were submitted
with --reply-to table:QUEUE. --take removes them from the queue and prints them:
the next reply of each run, so that the replies of a run come in order. If the
command is killed before it has printed a reply, that reply is lost to it; a
program on PostgreSQL takes replies in its own transaction instead, with
engine.take_replies.`,
		Args: cli.Wants("QUEUE"),
		RunE: func(cmd *cobra.Command, args []string) error {
			return showReplies(cmd.Context(), a, replies.Table+args[0], take, limit)
		},
	}
	cmd.Flags().BoolVar(&take, "take", false, "remove the replies from the queue")
	cmd.Flags().IntVar(&limit, "limit", limit, "most replies to show or take")
	return cmd
}

func showReplies(ctx context.Context, a *cli.App, sink string, take bool, limit int) error {
	if err := replies.Check(sink, ""); err != nil {
		return cli.Failed("Invalid queue", "%s.", err)
	}
	if limit < 1 || limit > mostReplies {
		return cli.Failed("Invalid flag", "--limit must be between 1 and %d, not %d.", mostReplies, limit)
	}
	open := func() (*session.Session, error) { return session.OpenReader(ctx, a, ".", ".") }
	if take {
		open = func() (*session.Session, error) { return session.OpenSpeaker(ctx, a) }
	}
	s, err := open()
	if err != nil {
		return err
	}
	defer s.Close()
	box, ok := replies.Of(s.Store)
	if !ok {
		return cli.Failed("No replies", "This state keeps no replies.")
	}
	get, what := box.Waiting, "list replies"
	if take {
		get, what = box.Take, "take replies"
	}
	list, err := get(ctx, sink, limit)
	if err != nil {
		return s.Wrap(what, err)
	}
	if a.JSON {
		out := []map[string]any{}
		for _, r := range list {
			out = append(out, map[string]any{"run": r.Name, "workflow": r.Workflow, "key": r.Key, "correlation": r.Correlation, "seq": r.N, "status": r.State,
				"at": r.At})
		}
		return a.PrintJSON(map[string]any{"replies": out})
	}
	if len(list) == 0 {
		a.Note("No replies wait.")
		return nil
	}
	table := render.Table{Head: []string{"TIME", "RUN", "WORKFLOW", "KEY", "CORRELATION", "SEQ", "STATUS"}}
	for _, r := range list {
		table.Add(words.Stamp(r.At), r.Name, r.Workflow, r.Key, r.Correlation, strconv.Itoa(int(r.N)), r.State)
	}
	return table.Write(a.Stdout)
}
