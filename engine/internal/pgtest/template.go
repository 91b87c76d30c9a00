package pgtest

import (
	"context"
	"crypto/rand"
	"errors"
	"os"
	"strings"
	"sync"
	"testing"

	"github.com/lib/pq"
)

// A Template fills one database and then makes copies of that database. Most tests need a
// migrated database, and a copy takes a tenth of the time of a migration. The methods of a
// Template may be called concurrently.
type Template struct {
	// Fill is called once, with the DSN of an empty database, and fills this database. It must
	// close all connections that it opens.
	Fill func(ctx context.Context, dsn string) error

	once sync.Once
	name string // name of the database that Fill has filled
	err  error  // why that database could not be made; nil = it was made
}

var (
	templatesMu sync.Mutex
	templates   []string // names of the databases that DropTemplates drops
)

// DSN makes a new copy of the filled database and returns the DSN of the copy. At the end of the
// test, the copy is dropped.
func (tp *Template) DSN(t testing.TB) string {
	t.Helper()
	tp.once.Do(func() { tp.name, tp.err = tp.make(context.WithoutCancel(t.Context())) })
	if tp.err != nil {
		t.Fatal(tp.err)
	}
	return create(t, tp.name)
}

// make creates a database and fills it. It returns the name of the database.
func (tp *Template) make(ctx context.Context) (string, error) {
	server := os.Getenv(EnvDSN)
	if server == "" {
		return "", errors.New(EnvDSN + " is not set: call pgtest.Main from TestMain, or run under `pgtest run`")
	}
	name := "template_" + strings.ToLower(rand.Text())
	dsn, err := within(server, name)
	if err != nil {
		return "", err
	}
	if err := Exec(ctx, server, "CREATE DATABASE "+pq.QuoteIdentifier(name)); err != nil {
		return "", err
	}
	templatesMu.Lock()
	templates = append(templates, name)
	templatesMu.Unlock()
	return name, tp.Fill(ctx, dsn)
}

// DropTemplates drops the filled databases of all Templates. Main calls DropTemplates after the
// tests. A TestMain that does not call Main must call DropTemplates.
func DropTemplates() error {
	templatesMu.Lock()
	defer templatesMu.Unlock()
	var errs []error
	for _, name := range templates {
		errs = append(errs, Exec(context.Background(), os.Getenv(EnvDSN), "DROP DATABASE "+pq.QuoteIdentifier(name)+" WITH (FORCE)"))
	}
	templates = nil
	return errors.Join(errs...)
}
