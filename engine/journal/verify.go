package journal

import (
	"context"
	"errors"
	"fmt"

	"github.com/saga-engine/engine/engine/crypt"
	"github.com/saga-engine/engine/engine/machine/status"
	"github.com/saga-engine/engine/engine/store"
)

// A Verified is the result of checking one run's history.
type Verified struct {
	Head   store.Head
	Rows   int // number of rows in the journal; after the first wrong row, no row was checked
	Tagged int // number of rows with a tag; without the key the tags were not checked
	Summed int // number of rows with a checksum and without a tag
	// Err is nil if no fault was found. Otherwise it is a *RunError. The *RunError contains a
	// *HistoryError if a row was changed, moved or is missing. It contains a *KeyError if data was
	// sealed with an unknown key. It may have another reason, such as a row of a newer version.
	Err error
}

// Verify checks the histories of runs. It returns one result for each run that exists, by ascending
// id. If the parameter `sealer` is nil, Verify does not check tags. There are two changes that
// Verify does not notice (decision 0020). First, a whole run was removed. Second, the last rows of
// a run were removed, and the Head of the run was changed so that it fits the remaining rows.
func Verify(ctx context.Context, store store.Journal, sealer crypt.Sealer, defs *Definitions, runs []status.RunID) ([]Verified, error) {
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

// verifyRun checks one run. The field Err of the first result says what is wrong with the run. The
// second result is an error if the store cannot be read.
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
	_, err := Reader{Sealer: sealer, Defs: defs}.Fold(ctx, l, &Scratch{}, nil)
	var alone *RunError
	switch {
	case errors.As(err, &alone):
		v.Err = alone
	case Permanent(err):
		v.Err = &RunError{Run: int64(l.Head.Run), Name: l.Head.Name, Err: err, Hint: HintFor(err)}
	case err != nil:
		return v, err
	}
	return v, nil
}
