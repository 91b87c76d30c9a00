package crypt

import (
	"crypto/aes"
	"crypto/cipher"
	"crypto/hmac"
	"crypto/rand"
	"crypto/sha256"
	"crypto/subtle"
	"encoding/base64"
	"encoding/hex"
	"errors"
	"fmt"
	"hash"
	"strings"
	"sync"
)

// A Sealer encrypts sensitive bytes before they are stored, and decrypts them. The argument `where`
// names the location in the store to which the bytes belong, such as one row of a journal. Bytes
// that were moved to another location cannot be decrypted. Implementations are safe for concurrent
// use.
type Sealer interface {
	// Seal returns the encrypted form of the bytes in `plain`. After the call, the Sealer does not
	// use this slice any more.
	Seal(where, plain []byte) ([]byte, error)
	// Open decrypts bytes that were sealed for the same location. It returns a *KeyError if
	// they were sealed with an unknown key.
	Open(where, sealed []byte) ([]byte, error)
	// KeyID returns the name of the key that Seal uses; never "". The name does not reveal
	// the key.
	KeyID() string
	// Tag returns a short code for data at the location `where`. Only an engine that has the key
	// can compute the code. So a correct code proves that such an engine wrote the data. After the
	// call, the Sealer does not use the arguments any more.
	Tag(where, data []byte) [TagSize]byte
	// Tagged reports whether `tag` is the result of Tag for the same location and data, with any of
	// the known keys.
	Tagged(where, data, tag []byte) bool
}

// TagSize is the length of a tag in bytes. Guessing a tag takes up to 2^64 tries, and each try
// needs an engine that reads the row.
const TagSize = 8

// keySize is the length of an encryption key in bytes.
const keySize = 32

// keyIDSize is the length in bytes of a key's id. The id is the beginning of a hash of the key,
// and sealed data contains it.
const keyIDSize = 4

// A Key is a secret AES-256 key.
type Key [keySize]byte

// NewKey makes a random key.
func NewKey() (Key, error) {
	var k Key
	if _, err := rand.Read(k[:]); err != nil {
		return Key{}, fmt.Errorf("make a key: %w", err)
	}
	return k, nil
}

// parseKey reads a key in the form of ENGINE_ENCRYPTION_KEY: 64 hex digits, or 32 bytes in
// base64.
func parseKey(text string) (Key, error) {
	text = strings.TrimSpace(text)
	var k Key
	for _, decode := range []func(string) ([]byte, error){
		hex.DecodeString,
		base64.StdEncoding.DecodeString, base64.RawStdEncoding.DecodeString,
		base64.URLEncoding.DecodeString, base64.RawURLEncoding.DecodeString,
	} {
		if b, err := decode(text); err == nil && len(b) == keySize {
			copy(k[:], b)
			return k, nil
		}
	}
	return Key{}, errors.New("an encryption key is 32 bytes written in base64 or hex; make one with: openssl rand -base64 32")
}

// Text returns the key in base64, in the form that parseKey reads. The result is the secret
// itself and must never be logged.
func (k Key) Text() string { return base64.StdEncoding.EncodeToString(k[:]) }

// String returns the key's id, not the key, so that a log never contains the key.
func (k Key) String() string { return "key " + k.id().String() }

// GoString returns the key's id, not the key.
func (k Key) GoString() string { return k.String() }

func (k Key) id() keyID {
	var id keyID
	sum := sha256.Sum256(append([]byte("engine key id\x00"), k[:]...))
	copy(id[:], sum[:])
	return id
}

type keyID [keyIDSize]byte

// String returns the id in hex.
func (id keyID) String() string { return hex.EncodeToString(id[:]) }

// A KeyError says that a value cannot be sealed or opened because a key is missing.
type KeyError struct {
	ID    string // id of the missing key, or words such as "for this data"; "" = there is no key
	Given string // id of the key that was given instead; "" = no key was given, or its id is not known
	Hint  string
}

// Error names the missing key and says what to do.
func (e *KeyError) Error() string {
	switch {
	case e.ID == "":
		return "no encryption key for sensitive values: " + e.Hint
	case e.Given != "":
		return fmt.Sprintf("the state was written with encryption key %s, and the key given is %s: %s", e.ID, e.Given, e.Hint)
	}
	return fmt.Sprintf("encryption key %s is missing: %s", e.ID, e.Hint)
}

// Hints for a person whose key is missing.
const (
	HintMakeKey = "make one with `openssl rand -base64 32` and set it as ENGINE_ENCRYPTION_KEY, the same for every engine on this store"
	hintSetKey  = "it was written with another key: add that key to ENGINE_ENCRYPTION_KEY, or restore the key file next to the state file"
)

// A keyring seals with its first key, and opens with any of its keys.
type keyring struct {
	first  keyID
	aeads  map[keyID]cipher.AEAD
	tags   []*tagger // one tagger for each key, in the order of the keys
	single []Sealer  // for each key, a Sealer that knows only this key; in the order of the keys
}

// NewSealer returns a Sealer. It seals with the first key, and it opens data that any of
// the keys sealed. The first key must be the key with which the store is written
// (journal.PinKey). The other keys are older keys of the store, or keys of other stores. A
// key that is given twice counts once. The cipher is AES-256-GCM with a random nonce. The id
// of the key is stored in front of the data.
func NewSealer(keys ...Key) (Sealer, error) {
	if len(keys) == 0 {
		return nil, &KeyError{Hint: HintMakeKey}
	}
	r := &keyring{first: keys[0].id(), aeads: map[keyID]cipher.AEAD{}}
	for _, k := range keys {
		if r.aeads[k.id()] != nil {
			continue
		}
		block, err := aes.NewCipher(k[:])
		if err != nil {
			return nil, fmt.Errorf("prepare %s: %w", k, err)
		}
		aead, err := cipher.NewGCM(block)
		if err != nil {
			return nil, fmt.Errorf("prepare %s: %w", k, err)
		}
		tags := newTagger(k)
		one := &keyring{first: k.id(), aeads: map[keyID]cipher.AEAD{k.id(): aead}, tags: []*tagger{tags}}
		one.single = []Sealer{one}
		r.aeads[k.id()] = aead
		r.tags, r.single = append(r.tags, tags), append(r.single, one)
	}
	return r, nil
}

// KeyID implements Sealer.
func (r *keyring) KeyID() string { return r.first.String() }

// Seal implements Sealer.
func (r *keyring) Seal(where, plain []byte) ([]byte, error) {
	aead := r.aeads[r.first]
	out := make([]byte, keyIDSize+aead.NonceSize(), keyIDSize+aead.NonceSize()+len(plain)+aead.Overhead())
	copy(out, r.first[:])
	nonce := out[keyIDSize:]
	if _, err := rand.Read(nonce); err != nil {
		return nil, fmt.Errorf("make a nonce: %w", err)
	}
	return aead.Seal(out, nonce, plain, where), nil
}

// Open implements Sealer.
func (r *keyring) Open(where, sealed []byte) ([]byte, error) {
	if len(sealed) < keyIDSize {
		return nil, errors.New("sealed data is cut short")
	}
	var id keyID
	copy(id[:], sealed)
	aead, ok := r.aeads[id]
	if !ok {
		return nil, &KeyError{ID: id.String(), Given: r.KeyID(), Hint: hintSetKey}
	}
	rest := sealed[keyIDSize:]
	if len(rest) < aead.NonceSize() {
		return nil, errors.New("sealed data is cut short")
	}
	plain, err := aead.Open(nil, rest[:aead.NonceSize()], rest[aead.NonceSize():], where)
	if err != nil {
		return nil, errors.New("sealed data was changed, or moved from another place")
	}
	return plain, nil
}

// Tag implements Sealer.
func (r *keyring) Tag(where, data []byte) [TagSize]byte { return r.tags[0].tag(where, data) }

// Tagged implements Sealer.
func (r *keyring) Tagged(where, data, tag []byte) bool {
	for _, t := range r.tags {
		if want := t.tag(where, data); subtle.ConstantTimeCompare(want[:], tag) == 1 {
			return true
		}
	}
	return false
}

var _ Sealer = (*keyring)(nil)

// A tagger makes tags with one key. A tag is the first bytes of an HMAC-SHA256. The key of the
// HMAC is derived from the encryption key, so that no key has two uses.
type tagger struct {
	states sync.Pool // *tagState values for reuse; making one takes three times as long as making a tag
}

// A tagState holds the memory that is needed to make one tag.
type tagState struct {
	mac hash.Hash
	sum [sha256.Size]byte
}

func newTagger(k Key) *tagger {
	own := sha256.Sum256(append([]byte("engine history key\x00"), k[:]...))
	return &tagger{states: sync.Pool{New: func() any { return &tagState{mac: hmac.New(sha256.New, own[:])} }}}
}

func (t *tagger) tag(where, data []byte) (tag [TagSize]byte) {
	s := t.states.Get().(*tagState)
	defer t.states.Put(s)
	s.mac.Reset()
	s.mac.Write(where) // Write of a hash never returns an error
	s.mac.Write(data)
	copy(tag[:], s.mac.Sum(s.sum[:0]))
	return tag
}
