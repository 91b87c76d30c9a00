package main

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"sync"
	"time"

	"github.com/saga-engine/engine/sdk"
)

// An effect is the simulated change that a call makes.
type effect struct {
	key    string // idempotency key of the call
	undoes string // idempotency key of the call that this effect undoes; "" = the effect is no undo
	value  any    // value that the call stores; nil for an undo
	dedupe bool   // apply the effect only once for each key
}

// An entry is one line of the ledger. It records that a call arrived, or what happened to the
// effect of the call: it was applied, it had already been applied, or it was refused.
type entry struct {
	At      time.Time `json:"at"`
	Kind    string    `json:"kind"` // "arrived", "applied", "repeated" or "refused"
	Key     string    `json:"key"`
	Purpose string    `json:"purpose"` // "do" or "undo"
	Forward string    `json:"forward,omitempty"`
	Run     string    `json:"run"`
	Step    string    `json:"step"`
	Attempt int       `json:"attempt"`
	Fence   int64     `json:"fence"`
	Applied bool      `json:"applied"` // the call has changed something
	Value   any       `json:"value,omitempty"`
}

// account says what the entries of the ledger record about one idempotency key.
type account struct {
	arrivals int  // number of calls with the key that have arrived
	applied  bool // an effect with the key was applied
	closed   bool // true = an undo for the key was applied, so later effects with the key are refused
	value    any  // value of the applied effect
}

// A ledger records effects by their idempotency keys, in memory and in a file. Several
// processes may share the file. A process locks the file, reads the new lines of other
// processes, and then appends its own line. So an effect that must be applied only once for a key
// is applied by only one of the processes.
type ledger struct {
	path string // path of the file; "" = no file

	mu       sync.Mutex // protects the fields below
	accounts map[string]*account
	read     int64 // number of bytes of the file whose entries are already in the field `accounts`
}

func newLedger(path string) *ledger {
	return &ledger{path: path, accounts: map[string]*account{}}
}

// arrive records the arrival of a call. It returns how many calls with the same key have
// arrived, including this call.
func (l *ledger) arrive(c *sdk.Call, e effect) (n int, err error) {
	err = l.update(func() (entry, error) {
		n = l.accountLocked(e.key).arrivals + 1
		return newEntry(c, e, "arrived"), nil
	})
	return n, err
}

var errUndone = &sdk.Failure{Code: "undone", Message: "the key was undone before", Permanent: true}

// apply applies the effect and returns its value. If an undo for the key of the effect was
// applied before, apply returns errUndone. If e.dedupe is true and an effect with the same key
// was applied before, apply does not apply a second effect, and returns the value of the first
// one.
func (l *ledger) apply(c *sdk.Call, e effect) (value any, err error) {
	err = l.update(func() (entry, error) {
		acc := l.accountLocked(e.key)
		next := newEntry(c, e, "applied")
		switch {
		case e.undoes == "" && acc.closed:
			next.Kind = "refused"
			return next, errUndone
		case acc.applied && e.dedupe:
			next.Kind, value = "repeated", acc.value
			return next, nil
		case e.undoes != "":
			next.Applied = l.accountLocked(e.undoes).applied
		default:
			next.Applied, next.Value, value = true, e.value, e.value
		}
		return next, nil
	})
	return value, err
}

// find looks up an idempotency key. If an effect with this key was applied, find returns done =
// true and the value of that effect.
func (l *ledger) find(key string) (value any, done bool, err error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.path != "" {
		f, err := l.openLocked()
		if err != nil {
			return nil, false, err
		}
		defer f.Close() //nolint:errcheck // the file was only read
	}
	acc := l.accountLocked(key)
	return acc.value, acc.applied, nil
}

// update calls fn and adds the entry that fn returns, first to the file and then to the
// accounts in memory. It adds the entry even if fn returns an error, and then returns this
// error.
func (l *ledger) update(fn func() (entry, error)) (err error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.path == "" {
		e, verdict := fn()
		l.countLocked(e)
		return verdict
	}
	f, err := l.openLocked()
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, f.Close()) }()
	e, verdict := fn()
	line, err := json.Marshal(e)
	if err != nil {
		return fmt.Errorf("ledger: %w", err)
	}
	n, err := f.Write(append(line, '\n'))
	l.read += int64(n)
	if err != nil {
		return fmt.Errorf("ledger: %w", err)
	}
	l.countLocked(e)
	return verdict
}

// openLocked opens and locks the file, and reads the entries that other processes have
// added. The caller must close the file, which also ends the lock.
func (l *ledger) openLocked() (*os.File, error) {
	f, err := os.OpenFile(l.path, os.O_RDWR|os.O_CREATE|os.O_APPEND, 0o600)
	if err != nil {
		return nil, fmt.Errorf("ledger: %w", err)
	}
	if err := lockFile(f); err != nil {
		return nil, errors.Join(fmt.Errorf("ledger: lock: %w", err), f.Close())
	}
	if err := l.catchUpLocked(f); err != nil {
		return nil, errors.Join(fmt.Errorf("ledger: %w", err), f.Close())
	}
	return f, nil
}

func (l *ledger) catchUpLocked(f *os.File) error {
	if _, err := f.Seek(l.read, io.SeekStart); err != nil {
		return err
	}
	r := bufio.NewReader(f)
	for {
		line, err := r.ReadBytes('\n')
		if errors.Is(err, io.EOF) && len(line) == 0 {
			return nil
		}
		if err != nil {
			return fmt.Errorf("line after byte %d: %w", l.read, err)
		}
		var e entry
		dec := json.NewDecoder(bytes.NewReader(line))
		dec.UseNumber()
		if err := dec.Decode(&e); err != nil {
			return fmt.Errorf("line after byte %d: %w", l.read, err)
		}
		l.read += int64(len(line))
		l.countLocked(e)
	}
}

// countLocked adds an entry to the account of the entry's key. If the entry is an undo that was
// applied, countLocked also closes the account of the key that was undone.
func (l *ledger) countLocked(e entry) {
	acc := l.accountLocked(e.Key)
	switch e.Kind {
	case "arrived":
		acc.arrivals++
	case "applied":
		acc.applied, acc.value = true, e.Value
		if e.Forward != "" {
			l.accountLocked(e.Forward).closed = true
		}
	}
}

func (l *ledger) accountLocked(key string) *account {
	acc := l.accounts[key]
	if acc == nil {
		acc = &account{}
		l.accounts[key] = acc
	}
	return acc
}

func newEntry(c *sdk.Call, e effect, kind string) entry {
	purpose := "do"
	if e.undoes != "" {
		purpose = "undo"
	}
	return entry{
		At: time.Now().UTC(), Kind: kind, Key: e.key, Purpose: purpose, Forward: e.undoes,
		Run: c.Run, Step: c.Step, Attempt: c.Attempt, Fence: c.Fence,
	}
}
