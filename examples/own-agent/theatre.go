package main

import (
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
)

var (
	errTaken    = errors.New("the seat is taken")
	errReleased = errors.New("this hold was released before it came")
	errNoSeat   = errors.New("a seat is a row from A to Z and a number from 1 to 99")
)

var seatPattern = regexp.MustCompile(`^[A-Z][1-9][0-9]?$`)

// A theatre is a directory. The file seats/A1 holds the hash of the key of the call that took seat
// A1 (see the function short). If the file released/HASH exists, the call whose key has that hash
// must have no effect any more. Several processes may use the directory at once.
type theatre struct{ dir string }

// open returns the theatre in the directory dir. It creates the directories that do not exist.
func open(dir string) (*theatre, error) {
	for _, sub := range []string{"seats", "released"} {
		if err := os.MkdirAll(filepath.Join(dir, sub), 0o755); err != nil {
			return nil, fmt.Errorf("open theatre: %w", err)
		}
	}
	return &theatre{dir: dir}, nil
}

// Hold takes a seat and returns its ticket. A repetition with the same key returns the same
// ticket. After errNoSeat, errTaken and errReleased it is certain that nothing was done.
func (t *theatre) Hold(key, seat string) (string, error) {
	if !seatPattern.MatchString(seat) {
		return "", errNoSeat
	}
	id := short(key)
	if t.isReleased(id) {
		return "", errReleased
	}
	note, err := os.CreateTemp(t.dir, "note-*")
	if err != nil {
		return "", fmt.Errorf("hold %s: %w", seat, err)
	}
	defer os.Remove(note.Name())
	_, err = note.WriteString(id)
	if err := errors.Join(err, note.Close()); err != nil {
		return "", fmt.Errorf("hold %s: %w", seat, err)
	}
	path := filepath.Join(t.dir, "seats", seat)
	switch err := os.Link(note.Name(), path); { // if several calls want the seat, only one Link succeeds
	case errors.Is(err, fs.ErrExist):
		holder, err := os.ReadFile(path)
		if err != nil {
			return "", fmt.Errorf("hold %s: %w", seat, err)
		}
		if string(holder) != id {
			return "", errTaken
		}
	case err != nil:
		return "", fmt.Errorf("hold %s: %w", seat, err)
	}
	// After the first check and before this call took the seat, another process may have called
	// Release with this key. In this case Release freed no seat.
	if t.isReleased(id) {
		if err := t.giveUp(id); err != nil {
			return "", err
		}
		return "", errReleased
	}
	return seat + "-" + id, nil
}

// Release undoes the call of Hold with this key, if that call has taken a seat. A call of Hold
// with this key that arrives later gets errReleased.
func (t *theatre) Release(key string) error {
	id := short(key)
	if err := os.WriteFile(filepath.Join(t.dir, "released", id), nil, 0o644); err != nil {
		return fmt.Errorf("release: %w", err)
	}
	return t.giveUp(id)
}

// Held returns the seats that are held.
func (t *theatre) Held() ([]string, error) {
	entries, err := os.ReadDir(filepath.Join(t.dir, "seats"))
	if err != nil {
		return nil, fmt.Errorf("list seats: %w", err)
	}
	var out []string
	for _, e := range entries {
		out = append(out, e.Name())
	}
	return out, nil
}

func (t *theatre) giveUp(id string) error {
	seats, err := t.Held()
	if err != nil {
		return err
	}
	for _, seat := range seats {
		path := filepath.Join(t.dir, "seats", seat)
		holder, err := os.ReadFile(path)
		if err == nil && string(holder) == id {
			err = os.Remove(path)
		}
		if err != nil && !errors.Is(err, fs.ErrNotExist) {
			return fmt.Errorf("give up %s: %w", seat, err)
		}
	}
	return nil
}

func (t *theatre) isReleased(id string) bool {
	_, err := os.Stat(filepath.Join(t.dir, "released", id))
	return err == nil
}

// short returns a file name for a key, because a key may contain any characters.
func short(key string) string {
	sum := sha256.Sum256([]byte(key))
	return hex.EncodeToString(sum[:8])
}
