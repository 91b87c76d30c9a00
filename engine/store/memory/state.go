package memory

import (
	"context"
	"errors"
	"slices"
	"sync"
	"time"

	"github.com/saga-engine/engine/engine/machine/status"
	"github.com/saga-engine/engine/engine/store"
	"github.com/saga-engine/engine/engine/store/naming"
	"github.com/saga-engine/engine/engine/store/notice"
	"github.com/saga-engine/engine/engine/store/replies"
	"github.com/saga-engine/engine/engine/store/snapshots"
)

// A state holds the data that the parts of a Store share.
type state struct {
	now func() time.Time

	mu      sync.Mutex // protects all fields below, and all fields of the parts
	closed  bool
	members map[store.EngineID]*member
	flows   []flow // all workflows; the index of a workflow is its WorkflowID - 1
	runs    map[status.RunID]*run
	names   map[string]status.RunID
	keys    map[key]*holder
	alerts  []alert       // all alerts, in the order of AlertRow.ID
	notices []notice.Kept // all notices, ascending by run, row and state
	posted  []*post       // all replies, ascending by run and number
	inbox   map[status.RunID][]store.Message

	sharing map[status.RunID]*run // runs with a limit

	open  map[store.EngineID]*queue // queue of each owner with open runs; the owner 0 means runs without an owner
	order []status.RunID            // ids of all runs, ascending
}

type flow struct {
	digest, name string
	steps        []string
	retention    time.Duration // 0 = the workflow has no retention of its own
}

type key struct{ workflow, key string }

// A holder is the entry of a unique key. It records which run took the key last, and which run
// waits for the key.
type holder struct {
	run   *run // run that took the key last; it stays here after retention has removed it
	scope naming.KeyScope
	reset bool // the goal was reset after the run had reached it
	gone  bool // retention has removed the run
	// The run that waits until the key is free, and how long it will hold the key. If `next` is nil
	// or has ended, no run waits.
	next      *run
	nextScope naming.KeyScope
}

// holdsAt reports whether the run that took the key last holds it at the given time.
func (h *holder) holdsAt(now time.Time) bool {
	return h.scope.Holds(h.run.head.State, h.run.head.FinishedAt, h.reset, now)
}

// waits reports whether an open run waits until the key is free.
func (h *holder) waits() bool { return h.next != nil && !h.next.head.State.Final() }

// existsLocked returns the outcome of a submission that is not committed, because h.run holds the
// unique key.
func (h *holder) existsLocked() store.Outcome {
	return store.Outcome{Submitted: store.Submitted{Run: h.run.head.Run, Name: h.run.head.Name, Exists: true, Gone: h.gone}}
}

type member struct {
	address string
	joined  time.Time
	lease   time.Time
	dead    bool
	fence   map[int]bool // numbers of the writers that may commit
	hand    []status.RunID
}

type run struct {
	short *snapshots.Snapshot // latest snapshot, without its field Last; nil = none
	head  store.Head
	key   key // unique key; if the field key.key is "", the run has none
	// internal id of the run that started this run as a child; 0 = none
	parent status.RunID
	// trigger says what started the run.
	trigger naming.Trigger
	// internal id of the run that has taken over the results of this run; 0 = none
	heir  status.RunID
	rows  []row
	share *share // limit that the run shares with other runs; nil = it has no limit
	// workflow that the run has now, if it was moved to another definition; 0 = it has
	// head.Workflow
	moved store.WorkflowID
	// instances of for_each steps; if the run was moved, also steps with new names
	nodes []store.NodeName
	late  []store.LateReply
	logs  []store.LogLine

	queue *queue // queue that contains the run; nil = the run has ended
	owner store.EngineID
	index int // index of the run in queue.runs
}

// A post is a reply, with the time before which no engine can claim it.
type post struct {
	replies.Reply
	due time.Time
}

type row struct {
	store.Row
	token int64
	steps []byte
}

// An alert is the row of an alert. The field `delivered` is true if the alert was pushed. The row
// has no names of the run: the method `namedLocked` adds them when the alert is read.
type alert struct {
	store.AlertRow
	delivered bool
}

// A share holds the limit that a run shares with other runs. The field `admitted` is true if the
// run holds a place.
type share struct {
	naming.Room
	admitted bool
}

// lock locks the mutex at the beginning of a call. If ctx has ended or the store is closed,
// it returns an error and does not lock the mutex.
func (s *state) lock(ctx context.Context) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	s.mu.Lock()
	if s.closed {
		s.mu.Unlock()
		return errClosed
	}
	return nil
}

// addLocked adds a run, and keeps the ids in the field `order` sorted. The id of a new run is
// usually the greatest, but runs of different engines may arrive in another order.
func (s *state) addLocked(r *run) {
	s.runs[r.head.Run] = r
	i := len(s.order)
	if i > 0 && s.order[i-1] > r.head.Run {
		i, _ = slices.BinarySearch(s.order, r.head.Run)
	}
	s.order = slices.Insert(s.order, i, r.head.Run)
}

func (s *state) aliveLocked(id store.EngineID) bool {
	m := s.members[id]
	return m != nil && !m.dead && m.lease.After(s.now())
}

// micro truncates a time to microseconds, the precision that every store keeps.
func micro(t time.Time) time.Time {
	if t.IsZero() {
		return t
	}
	return t.UTC().Truncate(time.Microsecond)
}

// idsOf returns a row for each run. A row has only the id of the run. If there are more
// runs than the parameter `limit`, idsOf leaves out the last ones.
func idsOf(runs []*run, limit int) []store.RunRow {
	rows := make([]store.RunRow, min(len(runs), limit))
	for i := range rows {
		rows[i].Run = runs[i].head.Run
	}
	return rows
}

var errClosed = errors.New("memory: store is closed")

func (s *state) flowLocked(id store.WorkflowID) (flow, bool) {
	if id < 1 || int(id) > len(s.flows) {
		return flow{}, false
	}
	return s.flows[id-1], true
}
