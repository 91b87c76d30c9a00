package runs

import (
	"context"
	"fmt"
	"os"
	"os/signal"
	"strings"
	"syscall"
	"time"

	"github.com/spf13/cobra"

	"github.com/saga-engine/engine/cmd/engine/internal/cli"
	"github.com/saga-engine/engine/cmd/engine/internal/exit"
	"github.com/saga-engine/engine/cmd/engine/internal/history"
	"github.com/saga-engine/engine/cmd/engine/internal/session"
	"github.com/saga-engine/engine/engine/machine/status"
	"github.com/saga-engine/engine/engine/store"
	"github.com/saga-engine/engine/engine/store/storekit"
)

type logsOptions struct {
	step   string
	follow bool
}

// Logs returns the command `engine logs`, which shows what agents logged for a run.
func Logs(a *cli.App) *cobra.Command {
	var o logsOptions
	cmd := &cobra.Command{
		Use:   "logs RUN",
		Short: "Show what agents logged while they worked on a run",
		Long: fmt.Sprintf(`Shows the lines that agents logged while they worked on a run's calls, without
secrets and sensitive values, and what they printed meanwhile, such as a panic.
The last %d lines of a run are kept. Groups of the run are included: their lines
begin with the name of the group's own run.

--follow goes on until the run has ended or needs a human; Ctrl-C ends it with
exit code 6.`, storekit.MaxLogLines),
		Args: cli.Wants("RUN"),
		RunE: func(cmd *cobra.Command, args []string) error { return agentLogs(cmd.Context(), a, args[0], o) },
	}
	f := cmd.Flags()
	f.StringVar(&o.step, "step", "", "only lines of this step or instance")
	f.BoolVar(&o.follow, "follow", false, "print new lines as they come")
	return takesRun(a, cmd)
}

const (
	logPage  = 500
	logPause = 500 * time.Millisecond // pause between two reads of the log lines
)

// logLag is how many reads in a row must find no new line before --follow ends after the end of
// the run. One read is not enough, because a line is stored about a second after an agent logs it.
const logLag = 4

func agentLogs(ctx context.Context, a *cli.App, name string, o logsOptions) error {
	if o.follow && a.JSON {
		return cli.Failed("Invalid flag", "--follow cannot be combined with --json.")
	}
	s, err := session.OpenReader(ctx, a, ".", ".")
	if err != nil {
		return err
	}
	defer s.Close()
	row, err := history.Find(ctx, a, s, name)
	if err != nil {
		return err
	}
	if o.step != "" {
		r, err := history.Read(ctx, s, row)
		if err != nil {
			return err
		}
		if err := knowsLogged(ctx, s, r, o.step); err != nil {
			return err
		}
	}
	if o.follow {
		return followLogs(ctx, a, s, row, o.step)
	}
	all, err := allLogs(ctx, a, s, row, o.step)
	if err != nil {
		return err
	}
	if a.JSON {
		list := []map[string]any{}
		for _, l := range all {
			list = append(list, l.json())
		}
		return a.PrintJSON(map[string]any{"run": row.Name, "logs": list})
	}
	for _, l := range all {
		if err := l.print(a); err != nil {
			return err
		}
	}
	if len(all) == 0 {
		a.Note("No agent has logged anything for run %s.", row.Name)
	}
	return nil
}

// logs reads the log lines of a run that have a larger number than the parameter `after`. It calls
// fn for each of these lines that belongs to the step in the parameter `step`; "" means all lines.
// The function `logs` returns the number of the last line that it read. If it read no line, it
// returns the value of the parameter `after`.
func logs(ctx context.Context, s *session.Session, row store.RunRow, step string, after int64, fn func(store.LogLine) error) (int64, error) {
	for {
		lines, err := s.Store.Logs(ctx, row.Run, after, logPage)
		if err != nil {
			return after, s.Wrap("read the logs", err)
		}
		for _, l := range lines {
			after = l.ID
			if step != "" && l.Step != step && !strings.HasPrefix(l.Step, step+"[") {
				continue
			}
			if err := fn(l); err != nil {
				return after, err
			}
		}
		if len(lines) < logPage {
			return after, nil
		}
	}
}

// followLogs prints new log lines. It returns when the run has ended or needs a human, and no more
// lines come.
func followLogs(ctx context.Context, a *cli.App, s *session.Session, row store.RunRow, step string) error {
	stops := make(chan os.Signal, 1)
	signal.Notify(stops, os.Interrupt, syscall.SIGTERM, syscall.SIGHUP)
	defer signal.Stop(stops)
	defer a.EndOnSecondSignal(syscall.SIGHUP)()
	ticker := time.NewTicker(logPause)
	defer ticker.Stop()
	over, after := 0, map[status.RunID]int64{}
	for {
		news, err := newLogs(ctx, s, row, step, after)
		if err != nil {
			return err
		}
		for _, l := range news {
			if err := l.print(a); err != nil {
				return err
			}
		}
		switch {
		case over == 0:
		case len(news) > 0:
			over = 1
		case over == logLag:
			return nil
		default:
			over++
		}
		if row, err = s.Store.Find(ctx, row.Name); err != nil {
			return s.Wrap("find the run", err)
		}
		if over == 0 && (row.State.Final() || row.State.NeedsHuman()) {
			over = 1
		}
		select {
		case <-stops:
			return exit.Code(exit.Open)
		case <-ctx.Done():
			return ctx.Err()
		case <-ticker.C:
		}
	}
}
