// Package ledger is the remote service of fault tests. It records every call and every effect.
// Only the ledger decides which effects happened: the tests compare the journals of the
// engines with the ledger.
package ledger

import (
	"bytes"
	"encoding/json"
	"fmt"
	"os"
	"sync"
	"time"
)

// A Kind is the purpose of a call: an effect, an undo, or a lookup.
type Kind string

// The kinds of calls.
const (
	Do     Kind = "do"
	Undo   Kind = "undo"
	Lookup Kind = "lookup"
)

// A Call is one call as the ledger received it.
type Call struct {
	Number  int       // number of the call among all calls, from 1
	At      time.Time // time of arrival
	Kind    Kind
	Key     string // idempotency key
	Forward string // key of the effect that an undo reverts; "" = the call is no undo
	Run     string // public id of the run
	Step    string // name of the step as agents see it
	Attempt int    // number of the attempt
	Fence   int64  // fencing token of the request; it rises each time the run gets another owner
}

// An Entry holds what the ledger knows about one key: its effects and their undos.
type Entry struct {
	Key       string
	Run       string
	Step      string
	Applied   int  // how many times the effect happened
	Undone    int  // number of effects that were undone
	Tombstone bool // an undo was called, so a later Apply with `honours` = true has no effect
	AppliedAt int  // position of the last effect in the order of all effects and undos; 0 = none
	UndoneAt  int  // position of the last undo in the order of all effects and undos; 0 = none
	Refused   int  // number of effects that were refused because their undo was called before
}

// A change is one line of the ledger's file: a call or the new state of an entry. One of
// the two fields is nil.
type change struct {
	Call  *Call  `json:",omitempty"`
	Entry *Entry `json:",omitempty"`
}

// A Ledger is the state of the remote service. A file keeps the state, so that it survives a
// restart.
type Ledger struct {
	mu      sync.Mutex // protects the fields below
	file    *os.File
	calls   []Call
	counts  map[string]int    // number of calls, by kind and key
	entries map[string]*Entry // entries, by key
	order   int               // how many effects and undos have happened in total
}

// Open reads the ledger's file and returns the Ledger. It creates a file that does not exist.
func Open(path string) (*Ledger, error) {
	data, err := os.ReadFile(path)
	if err != nil && !os.IsNotExist(err) {
		return nil, fmt.Errorf("ledger: %w", err)
	}
	l := &Ledger{counts: map[string]int{}, entries: map[string]*Entry{}}
	for dec := json.NewDecoder(bytes.NewReader(data)); dec.More(); {
		var c change
		if err := dec.Decode(&c); err != nil {
			return nil, fmt.Errorf("ledger: %s: %w", path, err)
		}
		if c.Call != nil {
			l.calls = append(l.calls, *c.Call)
			l.counts[string(c.Call.Kind)+c.Call.Key]++
		}
		if c.Entry != nil {
			l.entries[c.Entry.Key] = c.Entry
			l.order = max(l.order, c.Entry.AppliedAt, c.Entry.UndoneAt)
		}
	}
	if l.file, err = os.OpenFile(path, os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600); err != nil {
		return nil, fmt.Errorf("ledger: %w", err)
	}
	return l, nil
}

// Close closes the ledger's file.
func (l *Ledger) Close() error { return l.file.Close() }

// Arrive records a call. It returns the number of the call among the calls of the same kind
// and key, from 1.
func (l *Ledger) Arrive(c Call) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	c.Number, c.At = len(l.calls)+1, time.Now().UTC()
	if err := l.write(change{Call: &c}); err != nil {
		return 0, err
	}
	l.calls = append(l.calls, c)
	l.counts[string(c.Kind)+c.Key]++
	return l.counts[string(c.Kind)+c.Key], nil
}

// Apply records an effect of a key. If the parameter `honours` is true, the effect happens at most
// once, and never after its undo. Apply returns false if it refuses the effect because of the undo.
func (l *Ledger) Apply(key, run, step string, honours bool) (bool, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	e := l.entry(key)
	e.Run, e.Step = run, step
	switch {
	case honours && (e.Tombstone || e.Undone > 0):
		e.Refused++
	case honours && e.Applied > 0:
		return true, nil
	default:
		l.order++
		e.Applied++
		e.AppliedAt = l.order
	}
	if err := l.write(change{Entry: e}); err != nil {
		return false, err
	}
	l.entries[key] = e
	return e.Refused == 0, nil
}

// Reverse undoes the effect of a key. It also records that the undo was called, so that Apply
// refuses a later effect.
func (l *Ledger) Reverse(key, run, step string) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	e := l.entry(key)
	e.Run, e.Step = run, step
	if e.Applied > e.Undone {
		l.order++
		e.Undone, e.UndoneAt = e.Applied, l.order
	}
	e.Tombstone = true
	if err := l.write(change{Entry: e}); err != nil {
		return err
	}
	l.entries[key] = e
	return nil
}

// Standing reports whether an effect of the key happened and was not undone.
func (l *Ledger) Standing(key string) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	e := l.entries[key]
	return e != nil && e.Applied > e.Undone
}

// Count returns the number of calls that have arrived.
func (l *Ledger) Count() int {
	l.mu.Lock()
	defer l.mu.Unlock()
	return len(l.calls)
}

// A Snapshot is a copy of all calls and entries of a ledger.
type Snapshot struct {
	Calls   []Call
	Entries []Entry
}

// Snapshot returns a copy of all calls and entries.
func (l *Ledger) Snapshot() Snapshot {
	l.mu.Lock()
	defer l.mu.Unlock()
	s := Snapshot{Calls: append([]Call(nil), l.calls...)}
	for _, e := range l.entries {
		s.Entries = append(s.Entries, *e)
	}
	return s
}

// entry returns a copy of the entry for a key, or a new entry if there is none.
func (l *Ledger) entry(key string) *Entry {
	if e := l.entries[key]; e != nil {
		c := *e
		return &c
	}
	return &Entry{Key: key}
}

// write appends one line to the ledger's file.
func (l *Ledger) write(c change) error {
	line, err := json.Marshal(c)
	if err != nil {
		return fmt.Errorf("ledger: %w", err)
	}
	if _, err := l.file.Write(append(line, '\n')); err != nil {
		return fmt.Errorf("ledger: %w", err)
	}
	return nil
}
