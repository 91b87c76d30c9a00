package main

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/spf13/cobra"

	"github.com/saga-engine/engine/cmd/engine/render"
	"github.com/saga-engine/engine/engine/journal"
	"github.com/saga-engine/engine/engine/machine/status"
	"github.com/saga-engine/engine/engine/store"
)

// verifyPage is how many runs are read at once: all rows of each are in memory.
const verifyPage = 32

func dbVerifyCommand(a *app) *cobra.Command {
	return &cobra.Command{
		Use:   "verify [RUN]",
		Short: "Check that the history of runs is what engines wrote",
		Long: `Reads the journal of every run, or of one, and checks each row against its place
and the row before it. It finds a row that was changed, removed, swapped, moved
from elsewhere, or written without the encryption key. Without an encryption key
it finds accidents only: every user who can write to the state can compute new
checksums.

It cannot find a run that was removed whole, nor the last rows of a run that were
removed together with what the run's own row says of them.

Exit code: 0 every history verifies, 1 one does not or could not be read.`,
		Args: cobra.MaximumNArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			return a.keeper().dbVerify(cmd.Context(), strings.Join(args, ""))
		},
	}
}

// A verification is the result for all histories that were checked.
type verification struct {
	runs, rows, tagged, summed int
	bad                        []journal.Verified
}

// add counts a run.
func (v *verification) add(runs []journal.Verified) {
	for _, r := range runs {
		v.runs, v.rows, v.tagged, v.summed = v.runs+1, v.rows+r.Rows, v.tagged+r.Tagged, v.summed+r.Summed
		if r.Err != nil {
			v.bad = append(v.bad, r)
		}
	}
}

func (a keeper) dbVerify(ctx context.Context, name string) error {
	s, err := a.opener().openReader(ctx, ".", ".")
	if err != nil {
		return err
	}
	defer s.close()
	if err := s.people().rightKey(ctx); err != nil {
		return err
	}
	var v verification
	if name != "" {
		row, err := a.follower().findRun(ctx, s, name)
		if err != nil {
			return err
		}
		err = s.verify(ctx, &v, []store.RunRow{row})
		if err != nil {
			return err
		}
		return a.printVerification(s, v)
	}
	for before := status.RunID(0); ; {
		page, err := s.store.Runs(ctx, store.RunFilter{Before: before, Limit: verifyPage})
		if err != nil {
			return s.wrap("list runs", err)
		}
		if err := s.verify(ctx, &v, page); err != nil {
			return err
		}
		if len(page) < verifyPage {
			return a.printVerification(s, v)
		}
		before = page[len(page)-1].Run
	}
}

// verify checks the runs of a page.
func (s *session) verify(ctx context.Context, v *verification, page []store.RunRow) error {
	var ids []status.RunID
	for _, r := range page {
		ids = append(ids, r.Run)
	}
	slices.Sort(ids)
	runs, err := journal.Verify(ctx, s.store, s.sealer, s.defs, ids)
	if err != nil {
		return s.wrap("verify runs", err)
	}
	v.add(runs)
	return nil
}

// problemOf says which row of a run is wrong and why; row < 0 if it is not known.
func problemOf(r journal.Verified) (row int, what string) {
	var history *journal.HistoryError
	if errors.As(r.Err, &history) {
		return int(history.Seq), "Row " + strconv.Itoa(int(history.Seq)) + " " + history.Reason + "."
	}
	var alone *journal.RunError
	if errors.As(r.Err, &alone) {
		return -1, upperFirst(alone.Err.Error()) + "."
	}
	return -1, upperFirst(r.Err.Error()) + "."
}

// next is what to do about a run whose history does not verify.
const verifyNext = "No engine goes on with such a run. Compare it with a backup of the state, and look who can write to the state."

func (a keeper) printVerification(s *session, v verification) error {
	if a.json {
		bad := []map[string]any{}
		for _, r := range v.bad {
			row, what := problemOf(r)
			m := map[string]any{"run": r.Head.Name, "problem": what, "hint": verifyNext}
			if row >= 0 {
				m["row"] = row
			}
			bad = append(bad, m)
		}
		err := a.printJSON(map[string]any{"runs": v.runs, "rows": v.rows, "tagged": v.tagged, "checksums": v.summed, "keyed": s.sealer != nil, "bad": bad})
		if err != nil {
			return err
		}
	} else if s.sealer != nil || v.tagged == 0 || len(v.bad) > 0 {
		if err := a.printVerified(s, v); err != nil {
			return err
		}
	}
	switch {
	case len(v.bad) > 0:
		return exitError(exitFailed)
	case s.sealer == nil && v.tagged > 0:
		return failed("The state's key is not known", "%s of the journal carry a tag of an encryption key, but the state remembers no key: that note was removed. "+
			"Nothing can be said about the history; compare the state with a backup.", render.Count(v.tagged, "row"))
	}
	return nil
}

func (a keeper) printVerified(s *session, v verification) error {
	if len(v.bad) > 0 {
		table := render.Table{Head: []string{"RUN", "WHAT IS WRONG"}}
		for _, r := range v.bad {
			_, what := problemOf(r)
			table.Add(r.Head.Name, what)
		}
		if err := table.Write(a.stdout); err != nil {
			return fmt.Errorf("write to stdout: %w", err)
		}
		if err := a.print("\n%s not verify. %s\n", ofHistories(len(v.bad), v.runs), verifyNext); err != nil {
			return err
		}
	} else if err := a.print("The history of %s, %s, is what engines wrote.\n", render.Count(v.runs, "run"), render.Count(v.rows, "row")); err != nil {
		return err
	}
	if s.sealer == nil {
		if err := a.print("There is no encryption key: only accidents are found, not changes that were made on purpose.\n"); err != nil {
			return err
		}
	}
	if plain := v.rows - v.tagged - v.summed; plain > 0 {
		return a.print("%s by an earlier version, without a check: a change of them is found only where rows follow that have one.\n", wereWritten(plain))
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
