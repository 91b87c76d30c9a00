package journal

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/saga-engine/engine/engine/crypt"
	"github.com/saga-engine/engine/engine/machine/status"
	"github.com/saga-engine/engine/engine/store"
	"github.com/saga-engine/engine/engine/store/rekey"
	"github.com/saga-engine/engine/engine/store/schedules"
)

// A Resealing holds the results of Reseal.
type Resealing struct {
	Done KeyUse // how many rows and other data Reseal has replaced; Key is the id of the newest key
	Runs int    // number of runs of which Reseal replaced rows, messages or late replies
	// Refused holds the runs that Reseal did not change because of a fault: for example, the history
	// does not verify, or a key is missing. Reseal must not add a row to such a run.
	Refused []*RunError
	Busy    int // number of runs that Reseal did not change, because an engine changed the run during each try
}

// resealTries is how often Reseal tries to replace the data of one run.
const resealTries = 5

// Reseal takes all data that an older key has sealed, and seals it with the newest key. It also
// makes new tags for the rows of journals. It needs all keys with which the store was written.
// Engines may work on the store meanwhile. Reseal can be interrupted and called again at any time,
// because it replaces either all old data of a run or none.
//
// Each tag depends on the tag of the previous row. So if one row of a run changes, all later rows
// of the run get new tags, too. Reseal replaces all these rows together, and adds one empty row to
// the journal. An engine that has read the former rows cannot add its own row any more, because the
// number of the row is taken: it reads the run again (rekey.Resealer).
func Reseal(ctx context.Context, st store.Full, sealer crypt.Sealer) (Resealing, error) {
	role, err := resealer(st)
	if err != nil {
		return Resealing{}, err
	}
	r := &resealing{st: st, role: role, sealer: sealer, newest: crypt.Split(sealer)[0], defs: NewDefinitions(st, sealer)}
	r.Done.Key = r.newest.KeyID()
	err = r.mark(ctx)
	if err == nil {
		err = eachDefinition(ctx, role, func(d store.Definition) error { return r.definition(ctx, d) })
	}
	if err == nil {
		err = eachGiven(ctx, st, func(role schedules.Store, w schedules.Workflow) error { return r.given(ctx, role, w) })
	}
	if err == nil {
		err = eachKept(ctx, st, role, func(k kept) error { return r.run(ctx, k) })
	}
	return r.Resealing, err
}

// resealer returns the role Resealer of a store, or an error if the store does not have this role.
func resealer(st store.Full) (rekey.Resealer, error) {
	role, ok := rekey.Of(st)
	if !ok {
		return nil, errors.New(hintFixed)
	}
	return role, nil
}

// A resealing is the state of one call of Reseal.
type resealing struct {
	Resealing
	st     store.Full
	role   rekey.Resealer
	sealer crypt.Sealer // opens with all keys
	newest crypt.Sealer // has only the newest key
	defs   *Definitions
}

// old reports whether data from crypt.Wrap was sealed with another key than the newest one.
func (r *resealing) old(data []byte) bool {
	id := crypt.WrappedWith(data)
	return id != "" && id != r.Done.Key
}

// mark seals the setting SettingHistory again, unless the newest key has sealed it.
func (r *resealing) mark(ctx context.Context) error {
	old, err := r.st.Pin(ctx, SettingHistory, "")
	if err != nil {
		return fmt.Errorf("read the mark of the history: %w", err)
	}
	if id := markKey(old); id == "" || id == r.Done.Key {
		return nil
	}
	since, err := openMark(r.sealer, old)
	if err != nil {
		return err
	}
	again, err := sealMark(r.newest, since)
	if err == nil {
		_, err = r.role.Repin(ctx, SettingHistory, old, again)
	}
	if err != nil {
		return fmt.Errorf("seal the mark of the history again: %w", err)
	}
	r.Done.Settings++
	return nil
}

// definition seals a definition again, if another key than the newest one has sealed it.
func (r *resealing) definition(ctx context.Context, d store.Definition) error {
	if !r.old(d.Data) {
		return nil
	}
	data, err := crypt.Rewrap(r.sealer, definitionBinding(d.Digest), d.Data)
	if err == nil {
		err = r.role.ResealDefinition(ctx, d.Digest, data)
	}
	if err != nil {
		return fmt.Errorf("seal definition %.12s again: %w", d.Digest, err)
	}
	r.Done.Definitions++
	return nil
}

// given seals the variables of a published workflow again, if another key than the newest one has
// sealed them. If the workflow was published again meanwhile, this method changes nothing.
func (r *resealing) given(ctx context.Context, role schedules.Store, w schedules.Workflow) error {
	if !r.old(w.Given) {
		return nil
	}
	data, err := crypt.Rewrap(r.sealer, givenBinding(w.Name), w.Given)
	if err == nil {
		_, err = role.ReplaceGiven(ctx, w.Name, w.Given, data)
	}
	if err != nil {
		return fmt.Errorf("seal the variables of published workflow %q again: %w", w.Name, err)
	}
	r.Done.Settings++
	return nil
}

// run seals the data of one run again. If an engine has changed the run meanwhile, this method
// reads the data again and makes another try. It makes at most resealTries tries.
func (r *resealing) run(ctx context.Context, k kept) error {
	id := k.Head.Run
	for range resealTries {
		todo, err := r.resealed(ctx, k)
		var refused *RunError
		switch {
		case errors.As(err, &refused):
			r.Refused = append(r.Refused, refused)
			return nil
		case err != nil:
			return err
		case len(todo.Rows)+len(todo.Messages)+len(todo.Late) == 0:
			return nil
		}
		err = r.role.Reseal(ctx, todo)
		if err == nil {
			r.Runs++
			r.Done.Rows += len(todo.Rows)
			r.Done.Messages += len(todo.Messages)
			r.Done.LateReplies += len(todo.Late)
			return nil
		}
		if !errors.Is(err, store.ErrStale) {
			return fmt.Errorf("seal run %s again: %w", k.Head.Name, err)
		}
		again, err := readKept(ctx, r.st, r.role, []status.RunID{id})
		if err != nil || len(again) == 0 { // an error, or the run was removed
			return err
		}
		k = again[0]
	}
	r.Busy++
	return nil
}

// resealed returns the new data of a run. The error is a *RunError if the run must stay as it is,
// and another error if the store cannot be read.
func (r *resealing) resealed(ctx context.Context, k kept) (rekey.Resealed, error) {
	run, binding := k.Head.Run, messageBinding(k.Head.Run)
	out := rekey.Resealed{Run: run, Next: int32(len(k.Rows))}
	refuse := func(err error) error {
		var alone *RunError
		if errors.As(err, &alone) {
			return alone
		}
		return &RunError{Run: int64(run), Name: k.Head.Name, Err: err, Hint: HintFor(err)}
	}
	rows, link, err := r.rows(run, k.Rows)
	if err != nil {
		return out, refuse(err)
	}
	if len(rows) > 0 {
		// First verify the run: if its history is wrong, its rows must not get right tags.
		v, err := verifyRun(ctx, r.sealer, r.defs, k.Loaded)
		if err != nil {
			return out, err
		}
		if v.Err != nil {
			return out, refuse(v.Err)
		}
		out.At = k.Rows[len(k.Rows)-1].At
		if out.Data, _, err = (NewRow{Run: run, Seq: out.Next, At: out.At, Before: link}).Encode(r.newest, &Scratch{}); err != nil {
			return out, refuse(err)
		}
		out.Rows = rows
	}
	for _, m := range k.messages {
		if !r.old(m.Data) {
			continue
		}
		if m.Data, err = crypt.Rewrap(r.sealer, binding, m.Data); err != nil {
			return out, refuse(err)
		}
		out.Messages = append(out.Messages, m)
	}
	for _, l := range k.late {
		if !r.old(l.Data) {
			continue
		}
		if l.Data, err = crypt.Rewrap(r.sealer, binding, l.Data); err != nil {
			return out, refuse(err)
		}
		out.Late = append(out.Late, l)
	}
	return out, nil
}

// rows computes new data for the rows of a journal: the newest key now seals and tags each row that
// was sealed or tagged before. It returns the rows whose data changes, and the link for the row
// after the last one. It does not check whether the stored history is right.
func (r *resealing) rows(run status.RunID, rows []store.Row) (changed []store.Row, after Link, err error) {
	var c chain
	for _, row := range rows {
		body, _, ok := cutCheck(row.Data)
		if !ok {
			return nil, Link{}, faultChanged
		}
		data, flags := bytes.Clone(body), body[0]&markFlags
		if data[0] &^= markFlags; r.old(data) {
			if data, err = crypt.Rewrap(r.sealer, rowBinding(run, row.Seq), data); err != nil {
				return nil, Link{}, fmt.Errorf("open row %d: %w", row.Seq, err)
			}
		}
		data[0] |= flags
		switch protectionOf(flags) {
		case tagged:
			data, _ = c.bind(r.newest, run, row.Seq, row.At, data)
		case summed:
			data, _ = c.bind(nil, run, row.Seq, row.At, data)
		}
		next := store.Row{Seq: row.Seq, At: row.At, Data: data}
		if err := c.follow(r.newest, run, next); err != nil {
			return nil, Link{}, fmt.Errorf("row %d %w", row.Seq, err)
		}
		if !bytes.Equal(data, row.Data) {
			changed = append(changed, next)
		}
	}
	return changed, c.Link, nil
}

// FinishRotation records that a store contains only data of its newest key. From then on
// engines need only that key. The caller must have found no data of another key (CountKeys).
// Engines that joined the store before the key was changed may still seal with the former key. If
// such engines are alive, FinishRotation records nothing and returns them.
func FinishRotation(ctx context.Context, st store.Full, sealer crypt.Sealer) ([]store.Member, error) {
	role, err := resealer(st)
	if err != nil {
		return nil, err
	}
	ids, err := KeysOf(ctx, st)
	if err != nil || len(ids) < 2 {
		return nil, err
	}
	if _, err := fitsPin(ids, sealer); err != nil {
		return nil, err
	}
	_, last, err := sinceOf(ctx, st, ids[0])
	if err != nil {
		return nil, err
	}
	members, err := st.Members(ctx)
	if err != nil {
		return nil, fmt.Errorf("list engines: %w", err)
	}
	var early []store.Member
	for _, m := range members {
		if m.Left > 0 && m.Engine <= last {
			early = append(early, m)
		}
	}
	if len(early) > 0 {
		return early, nil
	}
	if _, err := role.Repin(ctx, SettingKey, strings.Join(ids, ","), ids[0]); err != nil {
		return nil, fmt.Errorf("record that the store has one key: %w", err)
	}
	return nil, nil
}
