package crypt

import (
	"fmt"
	"strings"
)

// ParseKeys returns the keys in a text, such as the value of ENGINE_ENCRYPTION_KEY. Commas or
// line ends separate the keys; parseKey reads each of them. The first key seals, and the others
// only open data.
func ParseKeys(text string) ([]Key, error) {
	parts := strings.FieldsFunc(text, func(r rune) bool { return r == ',' || r == '\n' || r == '\r' })
	if len(parts) < 2 {
		key, err := parseKey(strings.Join(parts, ""))
		return []Key{key}, err
	}
	keys := make([]Key, len(parts))
	for i, part := range parts {
		var err error
		if keys[i], err = parseKey(part); err != nil {
			return nil, fmt.Errorf("key %d of %d: %w", i+1, len(parts), err)
		}
	}
	return keys, nil
}

// Split returns one Sealer for each key of the Sealer s, in the order of the keys. Each of them
// seals and opens with its own key only. The first one seals with the same key as s.
func Split(s Sealer) []Sealer {
	if r, ok := s.(*keyring); ok {
		return r.single
	}
	return []Sealer{s}
}

// KeyIDs returns the ids of all keys of a Sealer. The first is the id of the key that seals.
// If s is nil, there are none.
func KeyIDs(s Sealer) []string {
	if s == nil {
		return nil
	}
	var ids []string
	for _, one := range Split(s) {
		ids = append(ids, one.KeyID())
	}
	return ids
}

// SealedWith returns the id of the key that sealed the data; "" if the data is too short to contain
// an id. SealedWith needs no key, and does not check whether the data was changed.
func SealedWith(sealed []byte) string {
	if len(sealed) < keyIDSize {
		return ""
	}
	return keyID(sealed[:keyIDSize]).String()
}

// WrappedWith returns the id of the key with which Wrap has sealed the data; "" if the data is
// not sealed.
func WrappedWith(data []byte) string {
	if len(data) == 0 || data[0] != MarkSealed {
		return ""
	}
	return SealedWith(data[1:])
}

// Rewrap opens data that Wrap has sealed, seals it with the present sealing key of s, and
// returns the newly sealed data. If the data is not sealed, Rewrap returns it unchanged. The
// parameter `where` names the location in the store to which the data belongs.
func Rewrap(s Sealer, where, data []byte) ([]byte, error) {
	if WrappedWith(data) == "" {
		return data, nil
	}
	plain, err := Unwrap(s, where, data)
	if err != nil {
		return nil, err
	}
	return Wrap(s, where, plain, true)
}
