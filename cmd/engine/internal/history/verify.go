package history

import (
	"context"
	"errors"
	"slices"
	"strconv"

	"github.com/saga-engine/engine/cmd/engine/internal/session"
	"github.com/saga-engine/engine/cmd/engine/internal/words"
	"github.com/saga-engine/engine/engine/journal"
	"github.com/saga-engine/engine/engine/machine/status"
	"github.com/saga-engine/engine/engine/store"
)

// VerifyPage is the largest number of runs that Verify gets in one call. All rows of these runs
// are in memory at the same time.
const VerifyPage = 32

// A Verification adds up the results of all runs whose history was checked. Rows is the number of
// rows in the journals of these runs. Tagged is the number of rows that have a tag, and Summed is
// the number of rows that have a checksum. Bad holds the runs whose history is wrong.
type Verification struct {
	Runs, Rows, Tagged, Summed int
	Bad                        []journal.Verified
}

// add adds the results of the given runs to v.
func (v *Verification) add(runs []journal.Verified) {
	for _, r := range runs {
		v.Runs, v.Rows, v.Tagged, v.Summed = v.Runs+1, v.Rows+r.Rows, v.Tagged+r.Tagged, v.Summed+r.Summed
		if r.Err != nil {
			v.Bad = append(v.Bad, r)
		}
	}
}

// Verify checks the histories of the runs in the slice `page`, and adds the results to v.
func Verify(ctx context.Context, s *session.Session, v *Verification, page []store.RunRow) error {
	var ids []status.RunID
	for _, r := range page {
		ids = append(ids, r.Run)
	}
	slices.Sort(ids)
	runs, err := journal.Verify(ctx, s.Store, s.Sealer, s.Defs, ids)
	if err != nil {
		return s.Wrap("verify runs", err)
	}
	v.add(runs)
	return nil
}

// ProblemOf returns the number of the row that is wrong, and a sentence that says why. The number
// is -1 if the row is not known.
func ProblemOf(r journal.Verified) (row int, what string) {
	var history *journal.HistoryError
	if errors.As(r.Err, &history) {
		return int(history.Seq), "Row " + strconv.Itoa(int(history.Seq)) + " " + history.Reason + "."
	}
	var alone *journal.RunError
	if errors.As(r.Err, &alone) {
		return -1, words.UpperFirst(alone.Err.Error()) + "."
	}
	return -1, words.UpperFirst(r.Err.Error()) + "."
}

// VerifyNext says what to do about a run whose history does not verify.
const VerifyNext = "No engine continues such a run. Compare it with a backup of the state, and look who can write to the state."
