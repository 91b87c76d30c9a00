package cli

import (
	"bytes"
	"errors"
	"strings"
	"testing"

	"github.com/saga-engine/engine/dsl"
	"github.com/saga-engine/engine/dsl/diag"
	"github.com/saga-engine/engine/engine/crypt"
	"github.com/saga-engine/engine/engine/store"
	"github.com/saga-engine/engine/engine/store/postgres"
	"github.com/saga-engine/engine/engine/store/sqlite"
	"github.com/saga-engine/engine/engine/story"
)

// An output is hidden where its declaration says so, and where a part of its value
// is sensitive.
func TestPrintOutputsHides(t *testing.T) {
	var out bytes.Buffer
	a := &App{Stdout: &out}
	err := a.PrintOutputs([]story.NamedValue{
		{Name: "open", Value: dsl.NewValue([]byte(`"shown"`), nil, nil)},
		{Name: "declared", Sensitive: true, Value: dsl.NewValue([]byte(`"hunter2"`), nil, nil)},
		{Name: "part", Value: dsl.NewValue([]byte(`{"a":"hunter2"}`), []string{"/a"}, nil)},
	})
	if text := out.String(); err != nil || !strings.Contains(text, "shown") || strings.Contains(text, "hunter2") || strings.Count(text, "(sensitive)") != 2 {
		t.Errorf("%s, %v; want two of three hidden", text, err)
	}
}

// Every error that a store may give names what to do.
func TestDiagnose(t *testing.T) {
	for _, c := range []struct {
		name            string
		err             error
		summary, detail string
	}{
		{"locked", &sqlite.LockedError{Path: "s.db", Holder: "process 7"}, "State file is in use", "s.db is held by process 7."},
		{"no schema", &store.SchemaError{Want: 2, Hint: "run it"}, "Database has no engine schema", "Run it."},
		{"older", &store.SchemaError{Have: 1, Want: 2, Hint: "run it"}, "Database must be migrated", "Its schema has version 1, this engine needs 2. Run it."},
		{"newer", &store.SchemaError{Have: 3, Want: 2, Hint: "use it"}, "Database is newer than this engine", "Its schema has version 3, this engine knows 2. Use it."},
		{"key", &crypt.KeyError{Hint: "make one"}, "Encryption key needed", "make one."},
		{"another key", &crypt.KeyError{ID: "aaaa", Given: "bbbb", Hint: "set it"}, "Wrong encryption key", "encryption key aaaa, and the key given is bbbb: set it."},
		{"store", &StoreError{Doing: "open the state", Err: errors.New("sqlite: open x: full")}, "Cannot open the state", "Open x: full."},
		{"store, asking", &StoreError{Doing: "open the state", Err: errors.New("postgres: refused: is it running?")}, "Cannot open the state", "Refused: is it running?"},
		{"loss", &StoreError{Doing: "serve", Err: &store.LossError{Store: "postgres", From: 1, To: 2, Known: "0/5", Switch: "0/4"}}, "Committed work is lost", "0/5"},
		{"former primary", &postgres.WrongServerError{Store: "postgres", Reason: "it is a former primary", Have: 1, Seen: 2}, "Not the server that holds the state", "former primary"},
		{"other", errors.New("something else"), "Something else", ""},
	} {
		t.Run(c.name, func(t *testing.T) {
			d := Diagnose(c.err)
			if len(d) != 1 || d[0].Severity != diag.SeverityError || d[0].Summary != c.summary || !strings.Contains(d[0].Detail, c.detail) || strings.Contains(d[0].Detail, "?.") {
				t.Errorf("diagnose = %+v, want %s: %s", d, c.summary, c.detail)
			}
		})
	}
}
