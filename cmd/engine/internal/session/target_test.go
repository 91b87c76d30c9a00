package session

import (
	"strings"
	"testing"

	"github.com/saga-engine/engine/cmd/engine/internal/cli"
)

func TestWithoutPassword(t *testing.T) {
	for _, c := range []struct{ dsn, want string }{
		{"postgres://joe:hunter2@db/x?sslmode=disable", "postgres://joe:xxxxx@db/x?sslmode=disable"},
		{"postgres://db/x?user=joe&password=hunter2", "postgres://db/x?password=xxxxx&user=joe"},
		{"postgres://db/x?sslkey=k.pem&sslpassword=hunter2", "postgres://db/x?sslkey=k.pem&sslpassword=xxxxx"},
		{"postgres://joe:hunter2@db:port/x", "the database of --dsn"},
		{"postgres://db/x", "postgres://db/x"},
	} {
		if got := withoutPassword(c.dsn); got != c.want {
			t.Errorf("withoutPassword(%s) = %s, want %s", c.dsn, got, c.want)
		}
	}
}

// --dsn says where the state is; without it the state is next to the module. Paths of
// --dsn are relative to --chdir.
func TestResolve(t *testing.T) {
	for _, c := range []struct {
		dsn  string
		want Target
		err  string // "" = accepted
	}{
		{"", Target{Path: "flows/.engine/state.db", Shown: "given/.engine/state.db", implied: true}, ""},
		{"sqlite:s.db", Target{Path: "dir/s.db", Shown: "s.db"}, ""},
		{"sqlite:///var/s.db", Target{Path: "/var/s.db", Shown: "/var/s.db"}, ""},
		{"sqlite:", Target{}, "sqlite: needs a path"},
		{"postgres://joe:hunter2@db/x", Target{Postgres: "postgres://joe:hunter2@db/x", Shown: "postgres://joe:xxxxx@db/x"}, ""},
		{"postgresql://db/x", Target{Postgres: "postgresql://db/x", Shown: "postgresql://db/x"}, ""},
		{"mysql://db/x", Target{}, "must be postgres://"},
		{"state.db", Target{}, "must be postgres://"},
	} {
		got, err := Resolve(&cli.App{DSN: c.dsn, Chdir: "dir"}, "flows", "given")
		if got != c.want || (err == nil) != (c.err == "") || err != nil && !strings.Contains(err.Error(), c.err) {
			t.Errorf("%q: %+v, %v; want %+v and %q", c.dsn, got, err, c.want, c.err)
		}
	}
}
