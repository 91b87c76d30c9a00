package session

import (
	"net/url"
	"path/filepath"
	"strings"

	"github.com/saga-engine/engine/cmd/engine/internal/cli"
)

// File is the path of the embedded store, relative to the module.
const File = ".engine/state.db"

// A Target says where the state is.
type Target struct {
	Postgres string // DSN of the PostgreSQL database; "" = the state is embedded
	Path     string // path of the embedded file; "" = the state is in PostgreSQL
	Shown    string // name of the state in messages; never holds a password
	implied  bool   // true = neither --dsn nor ENGINE_DSN is given
}

// Resolve returns the Target that --dsn names. Without --dsn, the Target is the embedded file of
// the module. The parameter `dir` is the path of the module's directory, and `shown` is that path
// as the user wrote it.
func Resolve(a *cli.App, dir, shown string) (Target, error) {
	scheme, rest, _ := strings.Cut(a.DSN, ":")
	switch {
	case a.DSN == "":
		return Target{
			Path:    filepath.Join(dir, filepath.FromSlash(File)),
			Shown:   filepath.ToSlash(filepath.Join(shown, File)),
			implied: true,
		}, nil
	case scheme == "postgres", scheme == "postgresql":
		return Target{Postgres: a.DSN, Shown: withoutPassword(a.DSN)}, nil
	case scheme == "sqlite":
		path := strings.TrimPrefix(rest, "//")
		if path == "" {
			return Target{}, cli.Failed("Invalid DSN", "sqlite: needs a path, such as sqlite:/var/lib/engine/state.db.")
		}
		return Target{Path: a.Path(path), Shown: path}, nil
	}
	return Target{}, cli.Failed("Invalid DSN", "--dsn (or ENGINE_DSN) must be postgres://… or sqlite:PATH.")
}

// withoutPassword returns a DSN with "xxxxx" in place of its passwords, so that messages can show
// it.
func withoutPassword(dsn string) string {
	u, err := url.Parse(dsn)
	if err != nil {
		return "the database of --dsn"
	}
	q := u.Query()
	for name := range q {
		if name == "password" || name == "sslpassword" {
			q.Set(name, "xxxxx")
		}
	}
	u.RawQuery = q.Encode()
	return u.Redacted()
}
