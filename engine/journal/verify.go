package journal

import (
	"context"
	"errors"
	"fmt"

	"github.com/saga-engine/engine/engine/crypt"
	"github.com/saga-engine/engine/engine/machine"
	"github.com/saga-engine/engine/engine/store"
)

// A Verified is a run whose history was looked at.
type Verified struct {
	Head   store.Head
	Rows   int // rows that were looked at
	Tagged int // those with a tag of the key, which was checked if the key is known
	Summed int // those with a checksum alone
	// Err is nil if every row is the one that was written in its place, as far as can
	// be told. Else it is a *RunError, with a *HistoryError inside if the history is
	// what is wrong, or a *KeyError if it was sealed with a key that is not known.
	Err error
}

// Verify checks the histories of runs, and returns one result for each that is
// there, ascending. A nil sealer checks no tags. What it cannot find: a whole run that
// was removed, and the last rows of a run that were removed together with what the
// run's own row says of them (decision 0020).
func Verify(ctx context.Context, store store.Journal, sealer crypt.Sealer, defs *Definitions, runs []machine.RunID) ([]Verified, error) {
	loaded, err := store.Load(ctx, runs...)
	if err != nil {
		return nil, fmt.Errorf("read the runs to verify: %w", err)
	}
	out := make([]Verified, 0, len(loaded))
	for _, l := range loaded {
		v, err := verifyRun(ctx, sealer, defs, l)
		if err != nil {
			return nil, err
		}
		out = append(out, v)
	}
	return out, nil
}

// verifyRun checks one run. The error is one that says nothing about the run.
func verifyRun(ctx context.Context, sealer crypt.Sealer, defs *Definitions, l store.Loaded) (Verified, error) {
	v := Verified{Head: l.Head, Rows: len(l.Rows)}
	for _, row := range l.Rows {
		if len(row.Data) == 0 {
			continue
		}
		switch protectionOf(row.Data[0]) {
		case tagged:
			v.Tagged++
		case summed:
			v.Summed++
		}
	}
	story, err := Fold(ctx, sealer, defs, l, &machine.Scratch{}, nil)
	var alone *RunError
	switch {
	case err == nil && story.State.Status() != l.Head.State:
		v.Err = broken(l.Head, story.chain.rows, historyFault(fmt.Sprintf(
			"is missing, or the run's own row was changed: that says %s, and the journal ends with %s", l.Head.State, story.State.Status())))
	case errors.As(err, &alone):
		v.Err = alone
	case Permanent(err):
		v.Err = &RunError{Run: int64(l.Head.Run), Name: l.Head.Name, Err: err, Hint: HintFor(err)}
	case err != nil:
		return v, err
	}
	return v, nil
}
