package operate

import (
	"context"
	"fmt"
	"strings"

	"github.com/spf13/cobra"

	"github.com/saga-engine/engine/cmd/engine/internal/cli"
	"github.com/saga-engine/engine/cmd/engine/internal/exit"
	"github.com/saga-engine/engine/cmd/engine/internal/history"
	"github.com/saga-engine/engine/cmd/engine/internal/session"
	"github.com/saga-engine/engine/cmd/engine/render"
	"github.com/saga-engine/engine/engine/machine/status"
	"github.com/saga-engine/engine/engine/store"
)

func verify(a *cli.App) *cobra.Command {
	return &cobra.Command{
		Use:   "verify [RUN]",
		Short: "Check that the history of runs is what engines wrote",
		Long: `Reads the journal of every run, or of one run, and checks each row against its
place and the row before it. It finds a row that was changed, removed, swapped,
moved from elsewhere, or written without the encryption key. Without an encryption
key it finds only accidents: every user who can write to the state can compute new
checksums.

It cannot find a run that was removed completely. It cannot find the last rows of a
run either, if they were removed together with what the row of the run says about
them.

Exit code: 0 every history verifies, 1 a history does not verify or could not be
read.`,
		Args: cobra.MaximumNArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			return dbVerify(cmd.Context(), a, strings.Join(args, ""))
		},
	}
}

func dbVerify(ctx context.Context, a *cli.App, name string) error {
	s, err := session.OpenReader(ctx, a, ".", ".")
	if err != nil {
		return err
	}
	defer s.Close()
	if _, err := s.ReadKey(ctx); err != nil {
		return err
	}
	var v history.Verification
	if name != "" {
		row, err := history.Find(ctx, a, s, name)
		if err != nil {
			return err
		}
		err = history.Verify(ctx, s, &v, []store.RunRow{row})
		if err != nil {
			return err
		}
		return printVerification(a, s, v)
	}
	for before := status.RunID(0); ; {
		page, err := s.Store.Runs(ctx, store.RunFilter{Before: before, Limit: history.VerifyPage})
		if err != nil {
			return s.Wrap("list runs", err)
		}
		if err := history.Verify(ctx, s, &v, page); err != nil {
			return err
		}
		if len(page) < history.VerifyPage {
			return printVerification(a, s, v)
		}
		before = page[len(page)-1].Run
	}
}

func printVerification(a *cli.App, s *session.Session, v history.Verification) error {
	if a.JSON {
		bad := []map[string]any{}
		for _, r := range v.Bad {
			row, what := history.ProblemOf(r)
			m := map[string]any{"run": r.Head.Name, "problem": what, "hint": history.VerifyNext}
			if row >= 0 {
				m["row"] = row
			}
			bad = append(bad, m)
		}
		err := a.PrintJSON(map[string]any{"runs": v.Runs, "rows": v.Rows, "tagged": v.Tagged, "checksums": v.Summed, "keyed": s.Sealer != nil, "bad": bad})
		if err != nil {
			return err
		}
	} else if s.Sealer != nil || v.Tagged == 0 || len(v.Bad) > 0 {
		if err := printVerified(a, s, v); err != nil {
			return err
		}
	}
	switch {
	case len(v.Bad) > 0:
		return exit.Code(exit.Failed)
	case s.Sealer == nil && v.Tagged > 0:
		return cli.Failed("The state's key is not known", "%s of the journal carry a tag of an encryption key, but the state has no record of its key: this record was removed. "+
			"Nothing can be said about the history; compare the state with a backup.", render.Count(v.Tagged, "row"))
	}
	return nil
}

func printVerified(a *cli.App, s *session.Session, v history.Verification) error {
	if len(v.Bad) > 0 {
		table := render.Table{Head: []string{"RUN", "WHAT IS WRONG"}}
		for _, r := range v.Bad {
			_, what := history.ProblemOf(r)
			table.Add(r.Head.Name, what)
		}
		if err := table.Write(a.Stdout); err != nil {
			return fmt.Errorf("write to stdout: %w", err)
		}
		if err := a.Print("\n%s not verify. %s\n", ofHistories(len(v.Bad), v.Runs), history.VerifyNext); err != nil {
			return err
		}
	} else if err := a.Print("The history of %s, %s, is what engines wrote.\n", render.Count(v.Runs, "run"), render.Count(v.Rows, "row")); err != nil {
		return err
	}
	if s.Sealer == nil {
		if err := a.Print("There is no encryption key: only accidents are found, not changes that were made on purpose.\n"); err != nil {
			return err
		}
	}
	if plain := v.Rows - v.Tagged - v.Summed; plain > 0 {
		return a.Print("%s by an earlier version, without a check: a change of them is found only where rows follow that have one.\n", wereWritten(plain))
	}
	return nil
}

func ofHistories(bad, all int) string {
	if bad == 1 {
		return fmt.Sprintf("1 of %d histories does", all)
	}
	return fmt.Sprintf("%d of %d histories do", bad, all)
}

func wereWritten(n int) string {
	if n == 1 {
		return "1 row was written"
	}
	return fmt.Sprintf("%d rows were written", n)
}
