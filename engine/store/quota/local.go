package quota

import (
	"context"
	"maps"
	"slices"
	"sync"
	"time"

	"github.com/saga-engine/engine/engine/store"
)

// A Table holds the rows of all limits in memory. The zero Table is empty and ready to use. It is
// not safe for concurrent use.
type Table struct {
	slots map[string]map[store.EngineID]SlotRow // rows of each limit, by engine
	calls map[string]map[int64]CallRow          // rows of each limit, by CallRow.Until in microseconds
}

// ShareSlots answers a SlotAsk. The parameter `now` is the store time.
func (t *Table) ShareSlots(engine store.EngineID, ask SlotAsk, now time.Time) SlotShare {
	rows := t.slots[ask.Limit]
	row, keep, share := Slots(slices.Collect(maps.Values(rows)), engine, ask, now)
	if rows == nil {
		if t.slots == nil {
			t.slots = map[string]map[store.EngineID]SlotRow{}
		}
		rows = map[store.EngineID]SlotRow{}
		t.slots[ask.Limit] = rows
	}
	maps.DeleteFunc(rows, func(_ store.EngineID, r SlotRow) bool { return !r.Until.After(now) })
	if delete(rows, engine); keep {
		rows[engine] = row
	}
	return share
}

// TakeCalls answers a CallAsk. The parameter `now` is the store time.
func (t *Table) TakeCalls(ask CallAsk, now time.Time) CallGrant {
	rows := t.calls[ask.Limit]
	changes, grant := Calls(slices.Collect(maps.Values(rows)), ask, now)
	if rows == nil {
		if t.calls == nil {
			t.calls = map[string]map[int64]CallRow{}
		}
		rows = map[int64]CallRow{}
		t.calls[ask.Limit] = rows
	}
	for _, c := range changes {
		if key := c.Until.UnixMicro(); c.Calls == 0 {
			delete(rows, key)
		} else {
			rows[key] = c
		}
	}
	return grant
}

// A Local is the Sharer of an engine whose store does not have the role Sharer. A Local keeps the
// rows in memory and does not know other engines. Its methods return no errors. NewLocal makes a
// Local.
type Local struct {
	mu    sync.Mutex // protects the field below
	table Table
}

var _ Sharer = (*Local)(nil)

// NewLocal returns an empty Local.
func NewLocal() *Local { return &Local{} }

// ShareSlots implements Sharer.
func (l *Local) ShareSlots(_ context.Context, engine store.EngineID, ask SlotAsk) (SlotShare, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.table.ShareSlots(engine, ask, time.Now()), nil
}

// TakeCalls implements Sharer.
func (l *Local) TakeCalls(_ context.Context, _ store.EngineID, ask CallAsk) (CallGrant, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.table.TakeCalls(ask, time.Now()), nil
}
