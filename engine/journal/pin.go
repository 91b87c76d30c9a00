package journal

import (
	"context"
	"encoding/binary"
	"encoding/hex"
	"errors"
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/saga-engine/engine/engine/crypt"
	"github.com/saga-engine/engine/engine/machine/status"
	"github.com/saga-engine/engine/engine/store"
	"github.com/saga-engine/engine/engine/store/naming"
	"github.com/saga-engine/engine/engine/store/rekey"
)

// Hints for a person who gave an engine other keys than those of the store, or in another order.
const (
	hintPinned = "set ENGINE_ENCRYPTION_KEY to the key of this state, or, if it is in the key file next to the state file, " +
		"restore that file and leave ENGINE_ENCRYPTION_KEY unset; to change the key, put the new one before this one, with a comma between them"
	hintOlder = "the state may still hold data that this key sealed: put it behind the other key until `engine key rotate` says that it has finished"
	hintOrder = "the key of this state was changed: put the first of the two keys before the other one"
	hintFixed = "this kind of store keeps its first key"
)

// PinKey records in a store the id of the key with which an engine seals data, before this engine
// writes any other data. If a key is recorded already, PinKey refuses an engine that does not have
// the recorded key, because this engine could not read the data of other engines. PinKey also
// refuses an engine without any key, because this engine would write in plain text the data that
// other engines seal. If only engines without keys have worked on a store, no key is recorded.
//
// The key can be changed if the store has the role Resealer: an engine gives the new key first, and
// the former key behind it. Then PinKey records the id of the new key in front of the id of the
// former key. From then on, PinKey refuses an engine that has only one of the two keys, or that has
// them in the former order. After FinishRotation, an engine needs only the new key. In a store
// without this role, PinKey refuses the new key.
func PinKey(ctx context.Context, st store.Store, sealer crypt.Sealer, now time.Time) error {
	for {
		again, err := pinOnce(ctx, st, sealer)
		switch {
		case err != nil:
			return err
		case !again:
			return pinHistory(ctx, st, sealer, now)
		}
	}
}

// pinOnce compares the keys of the sealer with the ids in the setting SettingKey, and records a new
// key there. It returns true if another engine has changed the setting in the meantime.
func pinOnce(ctx context.Context, st store.Store, sealer crypt.Sealer) (again bool, err error) {
	id := ""
	if sealer != nil {
		id = sealer.KeyID()
	}
	pinned, err := st.Pin(ctx, SettingKey, id)
	if err != nil {
		return false, fmt.Errorf("ask which key seals: %w", err)
	}
	if pinned == id {
		return false, nil
	}
	fits, err := fitsPin(strings.Split(pinned, ","), sealer)
	if err != nil {
		return false, err
	}
	role, ok := rekey.Of(st)
	switch {
	case !fits && !ok:
		return false, &crypt.KeyError{ID: pinned, Given: id, Hint: hintFixed}
	case !fits:
		next := id + "," + pinned
		if pinned, err = role.Repin(ctx, SettingKey, pinned, next); err != nil {
			return false, fmt.Errorf("record the new key: %w", err)
		}
		if pinned != next {
			return true, nil
		}
	}
	return false, pinSince(ctx, st, role, id)
}

// fitsPin compares the keys of an engine with the recorded ids, newest first. It returns true if
// the first key of the engine is the newest recorded key. It returns false if the first key of the
// engine is a new key, which may be recorded now. It returns a *KeyError if the engine lacks a
// recorded key, or has the keys in another order.
func fitsPin(pinned []string, sealer crypt.Sealer) (bool, error) {
	if sealer == nil {
		return false, &crypt.KeyError{ID: pinned[0], Hint: hintPinned}
	}
	given := crypt.KeyIDs(sealer)
	for i, id := range pinned {
		if !slices.Contains(given, id) {
			hint := hintPinned
			if i > 0 {
				hint = hintOlder
			}
			return false, &crypt.KeyError{ID: id, Given: given[0], Hint: hint}
		}
	}
	switch {
	case given[0] == pinned[0]:
		return true, nil
	case slices.Contains(pinned, given[0]):
		return false, &crypt.KeyError{ID: pinned[0], Given: given[0], Hint: hintOrder}
	}
	return false, nil
}

// KeysOf returns the ids of the keys with which a store was written, newest first. The result
// is empty if only engines without a key have worked on the store.
func KeysOf(ctx context.Context, st store.Catalogue) ([]string, error) {
	pinned, err := st.Pin(ctx, SettingKey, "")
	if err != nil {
		return nil, fmt.Errorf("ask which key seals: %w", err)
	}
	if pinned == "" {
		return nil, nil
	}
	return strings.Split(pinned, ","), nil
}

// pinSince is called when an engine starts with several keys, of which the key with this id is the
// newest. The first such call records the highest number that an engine has at this time. Engines
// up to this number may still seal with the former key. If a number is recorded for this key
// already, or the store does not have the role Resealer, pinSince changes nothing.
func pinSince(ctx context.Context, st store.Store, role rekey.Resealer, id string) error {
	if role == nil {
		return nil
	}
	old, _, err := sinceOf(ctx, st, id)
	if err != nil || strings.HasPrefix(old, id+" ") {
		return err
	}
	members, err := st.Members(ctx)
	if err != nil {
		return fmt.Errorf("list engines: %w", err)
	}
	last := store.EngineID(0)
	for _, m := range members {
		last = max(last, m.Engine)
	}
	if _, err := role.Repin(ctx, SettingKeySince, old, fmt.Sprintf("%s %d", id, last)); err != nil {
		return fmt.Errorf("record since when the key is the newest: %w", err)
	}
	return nil
}

// sinceOf returns the value of the setting SettingKeySince, and the engine number that pinSince
// recorded there. If the setting is not about the key with this id, the result `last` is the
// highest possible number.
func sinceOf(ctx context.Context, st store.Store, id string) (value string, last store.EngineID, err error) {
	if value, err = st.Pin(ctx, SettingKeySince, ""); err != nil {
		return "", 0, fmt.Errorf("ask since when the key is the newest: %w", err)
	}
	key, number, _ := strings.Cut(value, " ")
	n, err := strconv.ParseInt(number, 10, 32)
	if key != id || err != nil {
		return value, math.MaxInt32, nil
	}
	return value, store.EngineID(n), nil
}

// historyGrace is how long runs may still be created whose rows have no tag. It begins when the
// first engine starts that tags rows. It is needed because engines without a key, or of an earlier
// version, may still run then: an engine is refused only when it starts.
const historyGrace = 24 * time.Hour

// pinHistory records in a store the first run whose rows must all be tagged. Engines refuse
// untagged rows of this run and of later runs. The reason is that untagged rows look like rows of
// earlier versions. If engines accepted them, a person who can write to the state could replace the
// rows of a run by untagged rows. If the state has no runs yet, the rows of all its runs must be
// tagged.
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

// markBinding holds the bytes to which the seal of the setting SettingHistory is bound.
var markBinding = []byte("history\x00")

func sealMark(sealer crypt.Sealer, since status.RunID) (string, error) {
	sealed, err := sealer.Seal(markBinding, binary.BigEndian.AppendUint64(nil, uint64(since)))
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
	plain, err := sealer.Open(markBinding, sealed)
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
