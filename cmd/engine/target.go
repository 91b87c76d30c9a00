package main

import (
	"net/url"
	"path/filepath"
	"strings"
)

// stateFile is the path of the embedded store, relative to the module.
const stateFile = ".engine/state.db"

// A target says where the state is.
type target struct {
	postgres string // DSN; "" = embedded
	path     string // of the embedded file
	shown    string // what messages call it; never holds a password
	implied  bool   // neither --dsn nor ENGINE_DSN
}

// target resolves --dsn; dir is the module's directory as it is opened and
// shown the same as the user wrote it.
func (a speaker) target(dir, shown string) (target, error) {
	scheme, rest, _ := strings.Cut(a.dsn, ":")
	switch {
	case a.dsn == "":
		return target{
			path:    filepath.Join(dir, filepath.FromSlash(stateFile)),
			shown:   filepath.ToSlash(filepath.Join(shown, stateFile)),
			implied: true,
		}, nil
	case scheme == "postgres", scheme == "postgresql":
		return target{postgres: a.dsn, shown: withoutPassword(a.dsn)}, nil
	case scheme == "sqlite":
		path := strings.TrimPrefix(rest, "//")
		if path == "" {
			return target{}, failed("Invalid DSN", "sqlite: needs a path, such as sqlite:/var/lib/engine/state.db.")
		}
		return target{path: a.path(path), shown: path}, nil
	}
	return target{}, failed("Invalid DSN", "--dsn (or ENGINE_DSN) must be postgres://… or sqlite:PATH.")
}

// withoutPassword gives a DSN as it may be shown.
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
