package journal

import (
	"context"
	"encoding/binary"
	"encoding/hex"
	"errors"
	"fmt"
	"time"

	"github.com/saga-engine/engine/engine/crypt"
	"github.com/saga-engine/engine/engine/machine/status"
	"github.com/saga-engine/engine/engine/store"
	"github.com/saga-engine/engine/engine/store/naming"
)

const hintPinned = "set ENGINE_ENCRYPTION_KEY to the key of this state, or, where it is in the key file beside a state file, " +
	"restore that file and leave ENGINE_ENCRYPTION_KEY unset; another key needs another state"

// PinKey makes a store remember the key of the first engine that works on the store: it records
// the id of that key, before the engine writes any other data. PinKey refuses every engine with
// another key, because with two keys there would be runs that some engines cannot read. It
// refuses an engine without a key as well, because that engine would write in plain text what the
// others seal. If only engines without keys have worked on a store, no key is recorded.
func PinKey(ctx context.Context, st store.Store, sealer crypt.Sealer, now time.Time) error {
	id := ""
	if sealer != nil {
		id = sealer.KeyID()
	}
	pinned, err := st.Pin(ctx, SettingKey, id)
	switch {
	case err != nil:
		return fmt.Errorf("ask which key seals: %w", err)
	case pinned != id:
		return &crypt.KeyError{ID: pinned, Given: id, Hint: hintPinned}
	}
	return pinHistory(ctx, st, sealer, now)
}

// historyGrace begins when the first engine that tags rows starts. Runs that are created before
// its end may have rows without a tag. In that time engines of an earlier version, or without a
// key, may still run: they are refused only when they start.
const historyGrace = 24 * time.Hour

// pinHistory records in a store the first run whose rows must all be tagged. Engines refuse
// untagged rows of that run and of later runs. Otherwise a person who can write to the state
// could replace the rows of a run by untagged rows, which earlier versions wrote. If the state
// has no runs yet, the rows of all its runs must be tagged.
func pinHistory(ctx context.Context, st store.Store, sealer crypt.Sealer, now time.Time) error {
	mark, err := st.Pin(ctx, SettingHistory, "")
	switch {
	case err != nil:
		return fmt.Errorf("ask from which run on rows are tagged: %w", err)
	case sealer == nil && mark != "": // the setting exists, so the rows are tagged, but this engine has no key
		return &crypt.KeyError{ID: "for this state's history", Hint: hintPinned}
	case sealer == nil:
		return nil
	}
	if mark == "" {
		since := status.RunID(1)
		runs, err := st.Runs(ctx, store.RunFilter{Limit: 1})
		if err != nil {
			return fmt.Errorf("ask whether there are runs: %w", err)
		}
		if len(runs) > 0 {
			since = max(since, naming.FirstRunOf(now.Add(historyGrace)))
		}
		if mark, err = sealMark(sealer, since); err != nil {
			return err
		}
		if mark, err = st.Pin(ctx, SettingHistory, mark); err != nil {
			return fmt.Errorf("note from which run on rows are tagged: %w", err)
		}
	}
	_, err = openMark(sealer, mark)
	return err
}

// markPlace is the place for which the setting SettingHistory is sealed.
var markPlace = []byte("history\x00")

func sealMark(sealer crypt.Sealer, since status.RunID) (string, error) {
	sealed, err := sealer.Seal(markPlace, binary.BigEndian.AppendUint64(nil, uint64(since)))
	if err != nil {
		return "", fmt.Errorf("seal the mark of the history: %w", err)
	}
	return hex.EncodeToString(sealed), nil
}

// openMark decrypts the setting SettingHistory. It returns the first run whose rows must all be
// tagged.
func openMark(sealer crypt.Sealer, mark string) (status.RunID, error) {
	sealed, err := hex.DecodeString(mark)
	if err != nil {
		return 0, fmt.Errorf("read the mark of the history: %w", err)
	}
	plain, err := sealer.Open(markPlace, sealed)
	if err == nil && len(plain) != 8 {
		err = errors.New("it has another length")
	}
	if err != nil {
		return 0, fmt.Errorf("open the mark of the history, which says since when rows are tagged: %w", err)
	}
	return status.RunID(binary.BigEndian.Uint64(plain)), nil
}

// strict reports whether every row of a run must be tagged. Without a key it returns
// false, because tags cannot be checked.
func (d *Definitions) strict(ctx context.Context, run status.RunID) (bool, error) {
	if d.sealer == nil {
		return false, nil
	}
	d.mu.Lock()
	since := d.since
	d.mu.Unlock()
	if since == 0 {
		mark, err := d.store.Pin(ctx, SettingHistory, "")
		if err != nil {
			return false, fmt.Errorf("ask from which run on rows are tagged: %w", err)
		}
		if mark == "" { // no engine has tagged a row yet
			return false, nil
		}
		if since, err = openMark(d.sealer, mark); err != nil {
			return false, &unreadable{err}
		}
		d.mu.Lock()
		d.since = since
		d.mu.Unlock()
	}
	return run >= since, nil
}
