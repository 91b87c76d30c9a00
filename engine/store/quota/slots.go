package quota

import (
	"cmp"
	"slices"
	"time"

	"github.com/saga-engine/engine/engine/store"
)

// A SlotRow is the row of one engine and one limit, as a store keeps it.
type SlotRow struct {
	Engine store.EngineID
	Most   int       // the field Most of the last SlotAsk
	Slots  int       // slots that the engine holds
	Want   int       // the field Want of the last SlotAsk
	Since  time.Time // store time at which the engine last got a slot; zero = it never got one
	Seen   time.Time // store time of the last SlotAsk
	Until  time.Time // store time at which the row expires
}

// Turn is how long an engine may keep a slot of the remainder while other engines want it. The
// remainder is the slots that are left over if the slots cannot be divided equally. The engines use
// these slots one after the other (see the function `fair`).
const Turn = time.Second

// wantFor is how long SlotAsk.Want of an engine counts after its last SlotAsk. A living engine asks
// once a second, so its Want always counts. The Want of a dead engine does not count any more 5
// seconds after its last SlotAsk, so the dead engine takes no further slots from other engines.
const wantFor = 5 * time.Second

// Slots computes the answer to a SlotAsk. The parameter `rows` holds all rows of the limit, also
// rows whose time has passed. Slots returns the new row of the engine. If `keep` is false, the
// store removes the engine's row.
func Slots(rows []SlotRow, engine store.EngineID, ask SlotAsk, now time.Time) (row SlotRow, keep bool, share SlotShare) {
	row = SlotRow{Engine: engine, Most: ask.Most, Want: max(ask.Want, 0), Seen: now, Until: now.Add(ask.Keep + ask.Linger)}
	most, claimed, taken := ask.Most, 0, 0
	former := 0 // slots that the engine's row has now
	var others []SlotRow
	for _, r := range rows {
		if !r.Until.After(now) {
			// An expired row does not count, even if it is the row of this engine: other engines
			// may have its slots now.
			continue
		}
		if r.Engine == engine {
			former = r.Slots
			row.Since = r.Since
			if r.Until.After(row.Until) { // earlier calls of the engine may run until r.Until
				row.Until = r.Until
			}
			continue
		}
		if !r.Seen.Add(wantFor).After(now) {
			r.Want = min(r.Want, r.Slots)
		}
		if r.Slots == 0 && r.Want == 0 {
			continue
		}
		most = min(most, r.Most)
		taken += r.Slots
		claimed += max(r.Slots, r.Want)
		share.Contended = share.Contended || r.Want > r.Slots
		others = append(others, r)
	}
	reserve := max(0, min(ask.Reserve, former))
	free := max(0, most-taken-reserve)
	row.Slots = reserve
	share.Fair = fair(append(others, row), row, most, now)
	// The engine also gets half of the slots that no engine wants, so that it need not ask for each
	// call.
	if row.Want > 0 {
		share.Fair += max(0, most-claimed-max(row.Want, reserve)) / 2
	}
	row.Slots = max(reserve, min(share.Fair, reserve+free))
	if row.Slots > former {
		row.Since = now
	}
	share.Slots = row.Slots
	return row, row.Slots > 0 || row.Want > 0, share
}

// fair returns the part of one engine when the engines divide the slots. The parameter `self` is
// the row of this engine. The parameter `most` is the number of all slots. An engine that wants no
// more than an equal part gets as many slots as it wants. The other engines get equal parts of the
// slots that are left. If these slots cannot be divided equally, the remainder goes to some of the
// engines, one slot each, in this order: engines that got a slot of the remainder less than Turn
// ago, then engines that have no slot of the remainder, then all others. Within each of these three
// kinds, the engine is first that has waited longest since it last got a slot.
//
// Example: 7 slots, and three engines that want 1, 5 and 5. They get 1, 3 and 3. With 8 slots they
// get 1, 4 and 3. After the time Turn they get 1, 3 and 4.
func fair(rows []SlotRow, self SlotRow, most int, now time.Time) int {
	left := slices.Clone(rows)
	slices.SortFunc(left, func(a, b SlotRow) int { return cmp.Or(cmp.Compare(a.Want, b.Want), cmp.Compare(a.Engine, b.Engine)) })
	for len(left) > 0 && left[0].Want <= most/len(left) {
		if left[0].Engine == self.Engine {
			return left[0].Want
		}
		most -= left[0].Want
		left = left[1:]
	}
	each, more := most/len(left), most%len(left)
	turn := func(r SlotRow) int {
		switch {
		case r.Slots <= each:
			return 1
		case now.Sub(r.Since) < Turn:
			return 0
		}
		return 2
	}
	slices.SortFunc(left, func(a, b SlotRow) int {
		return cmp.Or(cmp.Compare(turn(a), turn(b)), a.Since.Compare(b.Since), cmp.Compare(a.Engine, b.Engine))
	})
	if slices.IndexFunc(left, func(r SlotRow) bool { return r.Engine == self.Engine }) < more {
		return each + 1
	}
	return each
}
