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

// A Template makes databases that are copies of one which it has filled before. A copy takes
// a tenth of the time of a migration, and most tests need a migrated database. Its methods
// may be called concurrently.
type Template struct {
	Fill func(ctx context.Context, dsn string) error // fills the empty database; closes its connections

	once sync.Once
	name string
	err  error
}

var (
	templatesMu sync.Mutex
	templates   []string // names of the databases that DropTemplates drops
)

// DSN returns the DSN of a new copy. The copy is dropped at the end of the test.
func (tp *Template) DSN(t testing.TB) string {
	t.Helper()
	tp.once.Do(func() { tp.name, tp.err = tp.make(context.WithoutCancel(t.Context())) })
	if tp.err != nil {
		t.Fatal(tp.err)
	}
	return create(t, tp.name)
}

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

// DropTemplates drops the databases of all templates. Main calls it after the tests; a
// TestMain without Main must call it itself.
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
