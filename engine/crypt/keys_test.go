package crypt_test

import (
	"bytes"
	"encoding/hex"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/saga-engine/engine/engine/crypt"
)

func TestParseKeys(t *testing.T) {
	a, b, c := makeKey(t), makeKey(t), makeKey(t)
	for _, tt := range []struct {
		text string
		want []crypt.Key
	}{
		{a.Text(), []crypt.Key{a}},
		{a.Text() + "," + b.Text(), []crypt.Key{a, b}},
		{" " + hex.EncodeToString(a[:]) + " , " + b.Text() + "\n", []crypt.Key{a, b}},
		{a.Text() + "\r\n" + b.Text() + "\n\n" + c.Text() + "\n", []crypt.Key{a, b, c}},
	} {
		if got, err := crypt.ParseKeys(tt.text); err != nil || !slices.Equal(got, tt.want) {
			t.Errorf("ParseKeys of %d keys = %d keys, %v", len(tt.want), len(got), err)
		}
	}
	for _, text := range []string{"", ",", "\n", "short", a.Text() + ",short", a.Text() + " " + b.Text()} {
		if _, err := crypt.ParseKeys(text); err == nil || strings.Contains(err.Error(), a.Text()) {
			t.Errorf("ParseKeys of %d characters = %v, want an error that does not repeat the text", len(text), err)
		}
	}
	if _, err := crypt.ParseKeys(a.Text() + ",short"); err == nil || !strings.Contains(err.Error(), "key 2 of 2") {
		t.Errorf("%v does not say which key is wrong", err)
	}
}

// The keys of a file are read in the order of its lines.
func TestKeyFileOfSeveralKeys(t *testing.T) {
	a, b := makeKey(t), makeKey(t)
	path := filepath.Join(t.TempDir(), "state.key")
	if err := os.WriteFile(path, []byte(a.Text()+"\n"+b.Text()+"\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	if got, err := crypt.LoadOrCreateKeyFile(path); err != nil || !slices.Equal(got, []crypt.Key{a, b}) {
		t.Errorf("%d keys, %v, want the two of the file in order", len(got), err)
	}
}

// The first of several keys seals and tags, and each of them opens and recognises its own.
func TestSeveralKeys(t *testing.T) {
	a, b := makeKey(t), makeKey(t)
	both, first, second := makeSealer(t, a, b, a), makeSealer(t, a), makeSealer(t, b)
	ids := []string{first.KeyID(), second.KeyID()}
	if got := crypt.KeyIDs(both); !slices.Equal(got, ids) || both.KeyID() != ids[0] {
		t.Errorf("ids = %q, seals with %q, want %q", got, both.KeyID(), ids)
	}
	if got := crypt.KeyIDs(nil); got != nil {
		t.Errorf("ids without a key = %q", got)
	}
	where := []byte("here")
	sealed, err := both.Seal(where, []byte("card"))
	if err != nil || crypt.SealedWith(sealed) != ids[0] {
		t.Errorf("sealed with %q, %v, want %q", crypt.SealedWith(sealed), err, ids[0])
	}
	parts := crypt.Split(both)
	if len(parts) != 2 {
		t.Fatalf("%d parts, want 2", len(parts))
	}
	for i, one := range []crypt.Sealer{first, second} {
		sealed, err := parts[i].Seal(where, []byte("card"))
		if err != nil || crypt.SealedWith(sealed) != ids[i] {
			t.Errorf("part %d seals with %q, %v", i, crypt.SealedWith(sealed), err)
		}
		if _, err := both.Open(where, sealed); err != nil {
			t.Errorf("key %d: %v", i, err)
		}
		if _, err := parts[1-i].Open(where, sealed); err == nil {
			t.Errorf("part %d opens what the other sealed", 1-i)
		}
		tag := one.Tag(where, []byte("row"))
		if !both.Tagged(where, []byte("row"), tag[:]) || !parts[i].Tagged(where, []byte("row"), tag[:]) || parts[1-i].Tagged(where, []byte("row"), tag[:]) {
			t.Errorf("the tag of key %d is not recognised as its own", i)
		}
	}
	if got := crypt.Split(parts[1]); len(got) != 1 || got[0].KeyID() != ids[1] {
		t.Errorf("a part has parts %v", got)
	}
	for _, data := range [][]byte{nil, {1, 2, 3}} {
		if got := crypt.SealedWith(data); got != "" {
			t.Errorf("SealedWith(%v) = %q", data, got)
		}
	}
}

func TestRewrap(t *testing.T) {
	a, b := makeKey(t), makeKey(t)
	old, both, newest := makeSealer(t, a), makeSealer(t, b, a), makeSealer(t, b)
	where := []byte("here")
	wrapped, err := crypt.Wrap(old, where, []byte("card"), true)
	if err != nil {
		t.Fatal(err)
	}
	if got := crypt.WrappedWith(wrapped); got != old.KeyID() {
		t.Errorf("wrapped with %q, want %q", got, old.KeyID())
	}
	again, err := crypt.Rewrap(both, where, wrapped)
	if err != nil || crypt.WrappedWith(again) != newest.KeyID() {
		t.Fatalf("wrapped again with %q, %v, want %q", crypt.WrappedWith(again), err, newest.KeyID())
	}
	if plain, err := crypt.Unwrap(newest, where, again); err != nil || string(plain) != "card" {
		t.Errorf("Unwrap = %q, %v", plain, err)
	}
	if _, err := crypt.Rewrap(newest, where, wrapped); err == nil {
		t.Error("data is sealed again without the key that opens it")
	}
	if _, err := crypt.Rewrap(both, []byte("elsewhere"), wrapped); err == nil {
		t.Error("data is sealed again for another place")
	}
	open, err := crypt.Wrap(nil, nil, []byte("plain"), false)
	if err != nil {
		t.Fatal(err)
	}
	if got, err := crypt.Rewrap(both, where, open); err != nil || !bytes.Equal(got, open) {
		t.Errorf("data that is not sealed becomes %q, %v", got, err)
	}
	if got := crypt.WrappedWith(nil); got != "" {
		t.Errorf("WrappedWith(nil) = %q", got)
	}
}
