package crypt

import (
	"errors"
	"fmt"
)

// The first byte of stored data, its mark, says whether the data is sealed. The numbers are
// persisted. Package journal uses further numbers for rows.
const (
	MarkPlain  = 0
	MarkSealed = 1
)

// Wrap returns data for a store: one byte, the mark, and then the bytes in `plain`. If the
// parameter `sensitive` is true, Wrap seals these bytes. The parameter `where` names the location
// in the store. Wrap returns a *KeyError if `sensitive` is true and `sealer` is nil.
func Wrap(sealer Sealer, where, plain []byte, sensitive bool) ([]byte, error) {
	if !sensitive {
		return append([]byte{MarkPlain}, plain...), nil
	}
	if sealer == nil {
		return nil, &KeyError{Hint: HintMakeKey}
	}
	sealed, err := sealer.Seal(where, plain)
	if err != nil {
		return nil, fmt.Errorf("seal sensitive data: %w", err)
	}
	return append([]byte{MarkSealed}, sealed...), nil
}

// Unwrap is the opposite of Wrap: it gets the data that Wrap returned, and returns the bytes
// that were given to Wrap. It returns a *KeyError if the data is sealed and `sealer` does
// not have the key.
func Unwrap(sealer Sealer, where, data []byte) ([]byte, error) {
	if len(data) == 0 {
		return nil, errors.New("stored data is empty")
	}
	return UnwrapMarked(sealer, where, data[0], data[1:])
}

// UnwrapMarked does the work of Unwrap for data in two parts. The parameter `mark` is the first
// byte of the data, and the parameter `rest` holds all other bytes.
func UnwrapMarked(sealer Sealer, where []byte, mark byte, rest []byte) ([]byte, error) {
	switch mark {
	case MarkPlain:
		return rest, nil
	case MarkSealed:
		if sealer == nil {
			return nil, &KeyError{ID: "for this data", Hint: hintSetKey}
		}
		return sealer.Open(where, rest)
	}
	return nil, fmt.Errorf("stored data begins with %d: written by a newer version", mark)
}
