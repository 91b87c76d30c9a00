package sqlite

import (
	"context"

	"github.com/saga-engine/engine/engine/store"
	"github.com/saga-engine/engine/engine/store/storekit"
)

// SQLite writes the WAL back into the file within the commit that has made it
// long enough, and a caller that waits for that commit waits for that too. This store
// does it beside the commits, in two parts: most of it while they go on, and
// between two of them the little that came meanwhile. Only then the WAL begins
// anew; without the second part it would grow for as long as commits keep
// coming.
const (
	// checkpointBytes is how much is committed between two checkpoints, as far as
	// that can be told: SQLite does not say how long the WAL is.
	checkpointBytes = 16 << 20
	// autoCheckpoint has SQLite make a checkpoint in a commit if the WAL has grown to
	// 16,000 pages, because no other checkpoint was made in time.
	autoCheckpoint = "wal_autocheckpoint(16000)"

	// What a commit and each of its rows write, beside their data.
	commitBytes = 12 << 10
	rowBytes    = 512

	walBack = `PRAGMA wal_checkpoint(PASSIVE)`
)

// wrote notes that a batch was committed, and begins a checkpoint if one is
// due; s.mu is held.
func (s *file) wrote(items []store.Transition) {
	s.written += commitBytes + rowBytes*len(items)
	for i := range items {
		s.written += len(items[i].Data) + storekit.StepRowSize*len(items[i].Steps)
	}
	if s.written < checkpointBytes || s.closing || s.beside != "" {
		return
	}
	s.written = 0
	s.checkpoints.Add(1)
	go func() {
		defer s.checkpoints.Done()
		s.checkpoint()
	}()
}

// checkpoint writes the WAL back. That it failed need not be told: nothing is
// lost by it, the WAL is longer, and the next commit or checkpoint meets what is
// wrong with the file.
func (s *file) checkpoint() {
	skip := func(row) error { return nil }
	if s.query(context.Background(), "checkpoint", walBack, nil, skip) != nil {
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.conn == nil {
		return
	}
	if err := (&tx{s: s}).each(walBack, nil, skip); err != nil {
		s.written = checkpointBytes // again after the next commit
	}
}
