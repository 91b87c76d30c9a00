package journal

import (
	"context"
	"encoding/hex"
	"fmt"
	"slices"

	"github.com/saga-engine/engine/engine/crypt"
	"github.com/saga-engine/engine/engine/machine/status"
	"github.com/saga-engine/engine/engine/store"
	"github.com/saga-engine/engine/engine/store/rekey"
	"github.com/saga-engine/engine/engine/store/schedules"
)

// A KeyUse says how much data of a store one key has sealed or tagged.
type KeyUse struct {
	Key         string // id of the key; "" = the key that made the tags is not known
	Rows        int    // number of journal rows
	Messages    int
	LateReplies int
	Definitions int
	Settings    int // number of settings, and of published workflows with sealed variables
}

// Total returns how many rows, messages and other data the key has sealed or tagged.
func (u KeyUse) Total() int {
	return u.Rows + u.Messages + u.LateReplies + u.Definitions + u.Settings
}

// keyUses maps the id of a key to the counts of the data that this key has sealed or tagged.
type keyUses map[string]*KeyUse

func (u keyUses) of(id string) *KeyUse {
	if u[id] == nil {
		u[id] = &KeyUse{Key: id}
	}
	return u[id]
}

// CountKeys reads the whole store and counts what each key has sealed or tagged. The result
// begins with the known keys, in the order of the sealer. Other keys follow if they have sealed or
// tagged data. Snapshots do not count: when Reseal replaces rows of a run, the store removes the
// snapshot of the run. CountKeys needs a store with the role Resealer.
func CountKeys(ctx context.Context, st store.Full, sealer crypt.Sealer) ([]KeyUse, error) {
	role, err := resealer(st)
	if err != nil {
		return nil, err
	}
	uses := keyUses{}
	mark, err := st.Pin(ctx, SettingHistory, "")
	if err != nil {
		return nil, fmt.Errorf("read the mark of the history: %w", err)
	}
	if id := markKey(mark); id != "" {
		uses.of(id).Settings++
	}
	err = eachDefinition(ctx, role, func(d store.Definition) error {
		if id := crypt.WrappedWith(d.Data); id != "" {
			uses.of(id).Definitions++
		}
		return nil
	})
	if err != nil {
		return nil, err
	}
	err = eachGiven(ctx, st, func(_ schedules.Store, w schedules.Workflow) error {
		if id := crypt.WrappedWith(w.Given); id != "" {
			uses.of(id).Settings++
		}
		return nil
	})
	if err != nil {
		return nil, err
	}
	err = eachKept(ctx, st, role, func(k kept) error {
		uses.addRun(sealer, k)
		return nil
	})
	if err != nil {
		return nil, err
	}
	return uses.sorted(crypt.KeyIDs(sealer)), nil
}

// markKey returns the id of the key that sealed the setting SettingHistory; "" = none did. The
// parameter `mark` is the value of this setting.
func markKey(mark string) string {
	sealed, err := hex.DecodeString(mark)
	if err != nil {
		return ""
	}
	return crypt.SealedWith(sealed)
}

// addRun adds the data of one run to the counts of the keys that sealed or tagged it.
func (u keyUses) addRun(sealer crypt.Sealer, k kept) {
	var c chain
	for _, row := range k.Rows {
		if id, has := c.keyOf(sealer, k.Head.Run, row); has {
			u.of(id).Rows++
		}
	}
	for _, m := range k.messages {
		if id := crypt.WrappedWith(m.Data); id != "" {
			u.of(id).Messages++
		}
	}
	for _, l := range k.late {
		if id := crypt.WrappedWith(l.Data); id != "" {
			u.of(id).LateReplies++
		}
	}
}

// keyOf says which key sealed or tagged the next row. If the row is sealed, or if a known key made
// its tag, it returns the id of the key and true. If the row is only tagged, and no known key made
// the tag, it returns "" and true. If the row is neither sealed nor tagged, it returns "" and
// false.
func (c *chain) keyOf(sealer crypt.Sealer, run status.RunID, row store.Row) (id string, has bool) {
	body, check, ok := cutCheck(row.Data)
	if ok && body[0]&^markFlags == crypt.MarkSealed {
		id, has = crypt.SealedWith(body[1:]), true
	} else if ok && protectionOf(body[0]) == tagged {
		has = true
		if sealer != nil {
			if key := c.taggedBy(sealer, run, row, body, check); key != nil {
				id = key.KeyID()
			}
		}
	}
	if err := c.follow(sealer, run, row); err != nil { // the history is wrong here, but later rows are counted anyway
		c.rows, c.best = row.Seq+1, unprotected
		if has && protectionOf(body[0]) == tagged {
			c.tag, c.best = [crypt.TagSize]byte(check), tagged
		}
	}
	return id, has
}

// sorted returns the counts of the keys: first the keys in `ids`, then the other keys by ascending
// id, and last the count of tags whose key is not known.
func (u keyUses) sorted(ids []string) []KeyUse {
	var out, others []KeyUse
	for _, id := range ids {
		out = append(out, *u.of(id))
		delete(u, id)
	}
	for _, use := range u {
		others = append(others, *use)
	}
	slices.SortFunc(others, func(a, b KeyUse) int {
		switch {
		case a.Key == b.Key:
			return 0
		case a.Key == "" || b.Key != "" && a.Key > b.Key:
			return 1
		}
		return -1
	})
	return append(out, others...)
}

// kept holds all data of one run that Reseal may seal again: its rows, messages and late replies.
type kept struct {
	store.Loaded
	messages []store.Message
	late     []store.LateReply
}

// resealPage is the largest number of runs whose rows are in memory at the same time. It is also
// the largest number of definitions in one answer of the store.
const resealPage = 32

// eachKept calls fn for each run of the store. It reads the runs in pages, and the page with the
// newest runs comes first. Within a page, the oldest run comes first. If fn returns an error,
// eachKept stops and returns this error.
func eachKept(ctx context.Context, st store.Full, role rekey.Resealer, fn func(kept) error) error {
	for before := status.RunID(0); ; {
		page, err := st.Runs(ctx, store.RunFilter{Before: before, Limit: resealPage})
		if err != nil {
			return fmt.Errorf("list runs: %w", err)
		}
		var ids []status.RunID
		for _, r := range page {
			ids = append(ids, r.Run)
		}
		runs, err := readKept(ctx, st, role, ids)
		if err != nil {
			return err
		}
		for _, k := range runs {
			if err := fn(k); err != nil {
				return err
			}
		}
		if len(page) < resealPage {
			return nil
		}
		before = page[len(page)-1].Run
	}
}

// readKept reads the data of the runs with the given ids. It leaves out runs that do not exist.
func readKept(ctx context.Context, st store.Journal, role rekey.Resealer, ids []status.RunID) ([]kept, error) {
	if len(ids) == 0 {
		return nil, nil
	}
	slices.Sort(ids)
	loaded, err := st.Load(ctx, ids...)
	if err != nil {
		return nil, fmt.Errorf("read runs: %w", err)
	}
	messages, late, err := role.AllMessages(ctx, ids...)
	if err != nil {
		return nil, fmt.Errorf("read messages and late replies: %w", err)
	}
	at := map[status.RunID]int{}
	out := make([]kept, len(loaded))
	for i, l := range loaded {
		out[i].Loaded, at[l.Head.Run] = l, i
	}
	for _, m := range messages {
		if i, ok := at[m.Run]; ok {
			out[i].messages = append(out[i].messages, m)
		}
	}
	for _, l := range late {
		if i, ok := at[l.Run]; ok {
			out[i].late = append(out[i].late, l)
		}
	}
	return out, nil
}

// eachDefinition calls fn for each definition of the store.
func eachDefinition(ctx context.Context, role rekey.Resealer, fn func(store.Definition) error) error {
	for after := ""; ; {
		page, err := role.Definitions(ctx, after, resealPage)
		if err != nil {
			return fmt.Errorf("list definitions: %w", err)
		}
		for _, d := range page {
			if err := fn(d); err != nil {
				return err
			}
		}
		if len(page) < resealPage {
			return nil
		}
		after = page[len(page)-1].Digest
	}
}
