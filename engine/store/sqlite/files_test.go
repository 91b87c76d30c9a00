//go:build unix

package sqlite

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
)

// The state is in a place that no other user could have prepared: no link is
// followed, nothing but a regular file is opened, and no other user can replace
// the files.
func TestPlaceIsChecked(t *testing.T) {
	for _, end := range []string{"", "-wal", "-shm", "-journal", ".lock"} {
		for kind, plant := range map[string]func(t *testing.T, path, victim string){
			"link": func(t *testing.T, path, victim string) {
				if err := os.Symlink(victim, path); err != nil {
					t.Fatal(err)
				}
			},
			"pipe": func(t *testing.T, path, _ string) {
				if err := syscall.Mkfifo(path, 0o600); err != nil {
					t.Fatal(err)
				}
			},
		} {
			t.Run(kind+end, func(t *testing.T) {
				path, victim := filepath.Join(t.TempDir(), "state.db"), filepath.Join(t.TempDir(), "victim")
				if end != "" && end != ".lock" {
					s, _, _ := populate(t, path)
					if err := s.Close(); err != nil {
						t.Fatal(err)
					}
				}
				if err := os.WriteFile(victim, []byte("mine"), 0o600); err != nil {
					t.Fatal(err)
				}
				plant(t, path+end, victim)
				want := errLink
				if kind == "pipe" {
					want = errNotRegular
				}
				for _, o := range []Options{{}, {ReadOnly: true}, {Beside: true}} {
					if end == ".lock" && o != (Options{}) {
						continue // they take no lock
					}
					if s, err := Open(t.Context(), path, o); !errors.Is(err, want) {
						t.Errorf("%+v: %v, want %v", o, err, want)
						if err == nil {
							_ = s.Close()
						}
					} else if !strings.Contains(err.Error(), path+end) {
						t.Errorf("%+v: %v does not name the file", o, err)
					}
				}
				if text, err := os.ReadFile(victim); err != nil || string(text) != "mine" {
					t.Errorf("the link was followed: %q, %v", text, err)
				}
			})
		}
	}
}

// A file or a directory of a user who is neither this one nor root is not written.
func TestPlaceOfAnother(t *testing.T) {
	if os.Geteuid() != 0 {
		t.Log("only root can give files away: the check of owners is tested where root runs the tests")
		return
	}
	for _, what := range []string{"", "state.db", "state.db.lock"} {
		t.Run("of "+what, func(t *testing.T) {
			dir := t.TempDir()
			path := filepath.Join(dir, "state.db")
			s, _, _ := populate(t, path)
			if err := s.Close(); err != nil {
				t.Fatal(err)
			}
			if err := os.Chown(filepath.Join(dir, what), 65534, 65534); err != nil {
				t.Fatal(err)
			}
			if s, err := Open(t.Context(), path, Options{}); !errors.Is(err, errOwner) || !strings.Contains(err.Error(), "belongs to user 65534") {
				t.Errorf("to write: %v", err)
				if err == nil {
					_ = s.Close()
				}
			}
			s, err := Open(t.Context(), path, Options{ReadOnly: true})
			if err != nil {
				t.Fatalf("to read: %v", err)
			}
			if err := s.Close(); err != nil {
				t.Error(err)
			}
		})
	}
}

// What others can write is said with the command that helps.
func TestPlaceOthersWrite(t *testing.T) {
	for mode, want := range map[os.FileMode]string{0o700: "", 0o755: "", 0o707: "every user", 0o777: "every user", 0o777 | os.ModeSticky: "every user"} {
		dir := filepath.Join(t.TempDir(), "place")
		if err := os.Mkdir(dir, 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.Chmod(dir, mode); err != nil {
			t.Fatal(err)
		}
		s, err := Open(t.Context(), filepath.Join(dir, "state.db"), Options{})
		switch {
		case want == "" && err != nil:
			t.Errorf("%o: %v", mode, err)
		case want != "" && (err == nil || !strings.Contains(err.Error(), want) || !strings.Contains(err.Error(), "chmod go-w "+dir)):
			t.Errorf("%o: %v", mode, err)
		}
		if err == nil {
			if err := s.Close(); err != nil {
				t.Error(err)
			}
		}
	}
}
