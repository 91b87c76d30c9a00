package postgres

import (
	"fmt"
	"sync"

	"github.com/saga-engine/engine/engine/machine/status"
	"github.com/saga-engine/engine/engine/store"
)

// An identity holds what a server reports about itself.
type identity struct {
	standby  bool
	system   int64 // number of the database cluster
	line     int64 // timeline; it rises with every promotion; 0 = a standby
	at       int64 // position at which the server's write-ahead log ends; 0 = a standby
	replayed int64 // log position up to which it has replayed; 0 = it started as the primary
	back     bool  // the server's log ends before a position that was confirmed on the same timeline
}

// A mark names a journal row whose commit a server has confirmed.
type mark struct {
	run   status.RunID
	seq   int32
	token int64
}

// A lineage records to which server a store wrote last, and up to which log position that
// server has confirmed commits. With this information the store notices that confirmed
// commits are missing on a server. The reason may be that a standby without the last
// commits became the primary, that a backup was restored, or that the address leads to the
// former primary again.
type lineage struct {
	mu     sync.Mutex // protects the fields below
	off    error      // why the server does not report its identity; nil = the server reports it
	system int64
	line   int64                    // the highest timeline seen so far
	known  int64                    // log position up to which commits on the highest timeline are confirmed
	marks  map[*Writer]mark         // the last confirmed row of each writer
	joined map[store.EngineID]int64 // for each engine of this store, the timeline on which it joined
	lost   *store.LossError
}

func newLineage() *lineage {
	return &lineage{marks: make(map[*Writer]mark), joined: make(map[store.EngineID]int64)}
}

// err returns a *store.LossError if the method `see` has found that the server lost commits.
// Otherwise it returns nil.
func (l *lineage) err() error {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.lost != nil {
		return l.lost
	}
	return nil
}

// disable records that the server does not report its identity.
func (l *lineage) disable(why error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.off, l.line, l.known = why, 0, 0
}

// disabled returns why the server does not report its identity. It returns nil if the
// server reports it.
func (l *lineage) disabled() error {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.off
}

// stale reports whether the server of a connection was replaced after the connection was opened.
// The parameter `line` is the timeline that the server had when the connection was opened.
func (l *lineage) stale(line int64) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return line < l.line
}

// reached returns the highest timeline seen so far, and the log position up to which commits on it
// are confirmed. Call reached before you ask a server for the end of its log. If you call it later,
// commits of other connections in between make the log look too short.
func (l *lineage) reached() (line, known int64) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.line, l.known
}

// confirm records m as the last committed row of a writer. The parameter `line` is the
// timeline of the server that confirmed the row. If this server has been replaced, confirm
// records nothing and returns false, because the confirmation does not count.
func (l *lineage) confirm(w *Writer, line int64, m mark) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	if line < l.line {
		return false
	}
	l.marks[w] = m
	return true
}

// forget removes the mark of a closed writer.
func (l *lineage) forget(w *Writer) {
	l.mu.Lock()
	defer l.mu.Unlock()
	delete(l.marks, w)
}

// join records on which timeline an engine joined.
func (l *lineage) join(id store.EngineID) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.joined[id] = l.line
}

func (l *lineage) leave(id store.EngineID) {
	l.mu.Lock()
	defer l.mu.Unlock()
	delete(l.joined, id)
}

// moved reports whether the server was replaced after an engine joined, or no longer reports its
// identity. If the result is true, the engine must read its runs again.
func (l *lineage) moved(id store.EngineID) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	line, ok := l.joined[id]
	return ok && line != l.line
}

// ticked records that a server has confirmed a tick. The tick also confirms all commits before a
// log position, which is the parameter `at`. If the timeline of the tick is not the highest one
// seen so far, ticked records nothing and returns false: the server was replaced, or the connection
// leads to a former primary.
func (l *lineage) ticked(line, at int64) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	if line != l.line {
		return false
	}
	l.known = max(l.known, at)
	return true
}

// see compares the identity of a server with the lineage, and returns the server's timeline. For a
// standby, it returns the highest timeline seen so far. The function `present` reports whether the
// server's journal has the row of a mark. If the store must not write to this server, see returns a
// *postgres.WrongServerError. If the server has lost confirmed commits, see returns no error, but
// from then on the method `err` returns the loss.
func (l *lineage) see(id identity, present func(mark) (bool, error)) (int64, error) {
	l.mu.Lock()
	if l.system == 0 && !id.standby {
		l.system, l.line = id.system, id.line
	}
	var missing []mark
	rises := !id.standby && id.system == l.system && id.line > l.line
	if rises {
		for _, m := range l.marks {
			missing = append(missing, m)
		}
	}
	l.mu.Unlock()

	var gone *mark
	for i := range missing {
		there, err := present(missing[i])
		if err != nil {
			return 0, err
		}
		if !there {
			gone = &missing[i]
		}
	}

	l.mu.Lock()
	defer l.mu.Unlock()
	switch {
	case l.system != 0 && id.system != l.system:
		return 0, &WrongServerError{Store: "postgres", Seen: l.line, Have: id.line, Reason: "it is another database cluster than before"}
	case id.standby:
		return l.line, nil // a standby accepts no writes, so it cannot confirm a commit
	case id.line < l.line:
		return 0, &WrongServerError{Store: "postgres", Seen: l.line, Have: id.line, Reason: "it was the primary until another one was promoted"}
	case id.line == l.line && id.back:
		l.lost = &store.LossError{Store: "postgres", From: l.line, To: id.line, Known: lsn(l.known), Switch: lsn(id.at)}
		l.known = id.at
		return id.line, nil
	case id.line > l.line:
		switch {
		case id.replayed != 0 && l.known > id.replayed:
			l.lost = &store.LossError{Store: "postgres", From: l.line, To: id.line, Known: lsn(l.known), Switch: lsn(id.replayed)}
		case gone != nil:
			l.lost = &store.LossError{Store: "postgres", From: l.line, To: id.line, Known: fmt.Sprintf("row %d of run %d", gone.seq, gone.run)}
			if id.replayed != 0 {
				l.lost.Switch = lsn(id.replayed)
			}
		}
		l.line, l.known = id.line, 0
		clear(l.marks)
	}
	return id.line, nil
}

// lsn formats a position in the write-ahead log like the server.
func lsn(at int64) string { return fmt.Sprintf("%X/%X", uint64(at)>>32, uint32(at)) }

// A WrongServerError says that a store's address leads to a server to which the store must not
// write: the former primary after a failover, or another database cluster. The store begins no
// write on this server after it has found this out.
type WrongServerError struct {
	Store      string // kind of the store: "postgres"
	Seen, Have int64  // PostgreSQL timelines: the highest of all servers so far; the timeline of this server
	Reason     string // what is wrong; only for display
}

// Error says what is wrong and what to do.
func (e *WrongServerError) Error() string {
	return fmt.Sprintf("%s: nothing is written to this server: %s (timeline %d, seen before: %d): let the DSN lead to the present primary, and stop the former one",
		e.Store, e.Reason, e.Have, e.Seen)
}
