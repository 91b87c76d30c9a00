package crypt_test

import (
	"bytes"
	"encoding/base64"
	"encoding/hex"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"github.com/saga-engine/engine/engine/crypt"
)

func makeKey(t *testing.T) crypt.Key {
	t.Helper()
	k, err := crypt.NewKey()
	if err != nil {
		t.Fatal(err)
	}
	return k
}

func makeSealer(t *testing.T, keys ...crypt.Key) crypt.Sealer {
	t.Helper()
	s, err := crypt.NewSealer(keys...)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

func TestSealerOpensOnlyWhatBelongsThere(t *testing.T) {
	key := makeKey(t)
	s := makeSealer(t, key)
	plain := []byte("4111 1111 1111 1111")
	where := []byte("row 3 of run 7")
	sealed, err := s.Seal(where, plain)
	if err != nil {
		t.Fatal(err)
	}
	if bytes.Contains(sealed, plain) {
		t.Fatal("the sealed form shows the text")
	}
	again, err := s.Seal(where, plain)
	if err != nil || bytes.Equal(sealed, again) {
		t.Errorf("two sealings are equal (%v): the nonce is not random", err)
	}
	flipped := func(i int) []byte { b := bytes.Clone(sealed); b[i] ^= 1; return b }
	tests := []struct {
		name   string
		where  []byte
		sealed []byte
		sealer crypt.Sealer
		ok     bool
	}{
		{"as sealed", where, sealed, s, true},
		{"moved to another run", []byte("row 3 of run 8"), sealed, s, false},
		{"moved to another row", []byte("row 4 of run 7"), sealed, s, false},
		{"nonce changed", where, flipped(5), s, false},
		{"text changed", where, flipped(20), s, false},
		{"tag changed", where, flipped(len(sealed) - 1), s, false},
		{"key id changed", where, flipped(0), s, false},
		{"cut short", where, sealed[:10], s, false},
		{"empty", where, nil, s, false},
		{"another key", where, sealed, makeSealer(t, makeKey(t)), false},
		{"an older key among several", where, sealed, makeSealer(t, makeKey(t), key), true},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			got, err := tt.sealer.Open(tt.where, tt.sealed)
			if (err == nil) != tt.ok || tt.ok && !bytes.Equal(got, plain) {
				t.Errorf("Open = %q, %v, want ok=%t", got, err, tt.ok)
			}
		})
	}
}

func TestSealerNamesTheMissingKey(t *testing.T) {
	sealed, err := makeSealer(t, makeKey(t)).Seal(nil, []byte("x"))
	if err != nil {
		t.Fatal(err)
	}
	_, err = makeSealer(t, makeKey(t)).Open(nil, sealed)
	var missing *crypt.KeyError
	if !errors.As(err, &missing) || missing.ID != hex.EncodeToString(sealed[:4]) || missing.Hint == "" {
		t.Errorf("Open = %v, want a KeyError with the key's id and a hint", err)
	}
	if _, err := crypt.NewSealer(); !errors.As(err, &missing) {
		t.Errorf("NewSealer() = %v, want a KeyError", err)
	}
}

func TestWrapMarksWhatIsSealed(t *testing.T) {
	s := makeSealer(t, makeKey(t))
	var missing *crypt.KeyError
	if _, err := crypt.Wrap(nil, nil, []byte("card"), true); !errors.As(err, &missing) || !strings.Contains(err.Error(), "openssl rand") {
		t.Errorf("Wrap without a key = %v, want a KeyError that says how to make one", err)
	}
	open, err := crypt.Wrap(nil, nil, []byte("plain"), false)
	if err != nil {
		t.Fatal(err)
	}
	if got, err := crypt.Unwrap(nil, nil, open); err != nil || string(got) != "plain" {
		t.Errorf("Unwrap = %q, %v", got, err)
	}
	sealed, err := crypt.Wrap(s, nil, []byte("card"), true)
	if err != nil || bytes.Contains(sealed, []byte("card")) {
		t.Fatalf("Wrap = %q, %v", sealed, err)
	}
	if got, err := crypt.Unwrap(s, nil, sealed); err != nil || string(got) != "card" {
		t.Errorf("Unwrap = %q, %v", got, err)
	}
	if _, err := crypt.Unwrap(nil, nil, sealed); !errors.As(err, &missing) {
		t.Errorf("Unwrap without a key = %v, want a KeyError", err)
	}
	for _, data := range [][]byte{nil, {9, 1, 2}} {
		if _, err := crypt.Unwrap(s, nil, data); err == nil {
			t.Errorf("Unwrap(%v) gives no error", data)
		}
	}
}

func TestParseKey(t *testing.T) {
	key := makeKey(t)
	raw := key[:]
	for _, text := range []string{
		hex.EncodeToString(raw), base64.StdEncoding.EncodeToString(raw) + "\n",
		base64.RawStdEncoding.EncodeToString(raw), base64.URLEncoding.EncodeToString(raw),
	} {
		if got, err := crypt.ParseKey(text); err != nil || got != key {
			t.Errorf("ParseKey of a valid form: %v", err)
		}
	}
	for _, text := range []string{"", "short", hex.EncodeToString(raw[:16]), strings.Repeat("!", 44)} {
		_, err := crypt.ParseKey(text)
		if err == nil || text != "" && strings.Contains(err.Error(), text) {
			t.Errorf("ParseKey(%d characters) = %v, want an error that does not repeat the text", len(text), err)
		}
	}
	secret := base64.StdEncoding.EncodeToString(raw)
	if s := fmt.Sprintf("%v %+v %#v %s", key, key, key, key); strings.Contains(s, secret) || strings.Contains(s, fmt.Sprint(raw)) {
		t.Errorf("a printed key shows itself: %s", s)
	}
}

func TestKeyFile(t *testing.T) {
	path := filepath.Join(t.TempDir(), "state.key")
	var wg sync.WaitGroup
	keys := make([]crypt.Key, 8)
	for i := range keys {
		wg.Go(func() {
			got, err := crypt.LoadOrCreateKeyFile(path)
			if err != nil || len(got) != 1 {
				t.Errorf("%d keys, %v", len(got), err)
				return
			}
			keys[i] = got[0]
		})
	}
	wg.Wait()
	for _, k := range keys {
		if k != keys[0] {
			t.Fatal("two who create the file at once have different keys")
		}
	}
	info, err := os.Stat(path)
	if err != nil || info.Mode().Perm() != 0o600 {
		t.Errorf("key file: %v, %v, want mode 0600", info.Mode(), err)
	}
	if left, err := filepath.Glob(filepath.Join(filepath.Dir(path), ".key-*")); err != nil || len(left) > 0 {
		t.Errorf("temporary files are left: %v, %v", left, err)
	}
	for _, mode := range []os.FileMode{0o644, 0o640, 0o604, 0o620, 0o601} {
		if err := os.Chmod(path, mode); err != nil {
			t.Fatal(err)
		}
		if _, err := crypt.LoadOrCreateKeyFile(path); err == nil || !strings.Contains(err.Error(), "chmod 600") {
			t.Errorf("a key file of mode %04o: %v, want a refusal", mode, err)
		}
	}
	if err := os.WriteFile(path, []byte("junk"), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.Chmod(path, 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := crypt.LoadOrCreateKeyFile(path); err == nil || !strings.Contains(err.Error(), "damaged") {
		t.Errorf("a damaged key file: %v, want a refusal", err)
	}
}
