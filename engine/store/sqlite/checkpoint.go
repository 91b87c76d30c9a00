package sqlite

import (
	"context"

	"github.com/saga-engine/engine/engine/store"
	"github.com/saga-engine/engine/engine/store/storekit"
)

// wrote adds the estimated size of a batch to the field `written`, and starts a checkpoint if
// one is due. The caller holds s.mu.
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

// checkpoint writes the WAL back into the file, in two parts. Commits have to wait only for the
// second part, which is short. The method does not return errors. If a part fails, no data is lost,
// but the WAL grows longer. If the file itself has a problem, the next commit returns an error.
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
		s.written = checkpointBytes // try again after the next commit
	}
}
