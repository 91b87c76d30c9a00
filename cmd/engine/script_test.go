package main

import (
	"context"
	"crypto/rand"
	"database/sql"
	"errors"
	"flag"
	"fmt"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"github.com/rogpeppe/go-internal/testscript"

	"github.com/saga-engine/engine/engine/store/postgres"
)

// Names of variables that the test binary hands to itself.
const (
	envServer = "ENGINE_TEST_DSN"    // a PostgreSQL server
	envAgents = "ENGINE_TEST_AGENTS" // a directory of built agents
)

// TestMain makes this binary the command `engine` in scripts, builds the
// agents, and sees to a PostgreSQL server.
func TestMain(m *testing.M) {
	testscript.Main(suite{m}, map[string]func(){
		"engine": main,
	})
}

type suite struct{ m *testing.M }

// Run runs the tests. Without a server it runs this binary again under one.
func (s suite) Run() int {
	if os.Getenv(envServer) == "" {
		return rerun("go", append([]string{"run", "../../engine/internal/pgtest/cmd/pgtest", "run", "--", os.Args[0]}, os.Args[1:]...)...)
	}
	dir, err := os.MkdirTemp("", "engine-agents-")
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	defer os.RemoveAll(dir)
	if code := rerun("go", "build", "-o", dir, "../../plugins/..."); code != 0 {
		return code
	}
	if err := errors.Join(os.Setenv(envAgents, dir), os.Chmod(dir, 0o755)); err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	// Scripts often wait: for leases to run out, for latencies.
	if err := flag.Set("test.parallel", "4"); err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	code := s.m.Run()
	if err := execSQL(context.Background(), "postgres", os.Getenv(envServer), "DROP DATABASE IF EXISTS "+template); err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	return code
}

func rerun(name string, args ...string) int {
	cmd := exec.Command(name, args...)
	cmd.Stdin, cmd.Stdout, cmd.Stderr = os.Stdin, os.Stdout, os.Stderr
	if err := cmd.Run(); err != nil {
		var exit *exec.ExitError
		if errors.As(err, &exit) && exit.ExitCode() > 0 {
			return exit.ExitCode()
		}
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	return 0
}

// TestScript runs the scripts of every command and of bad input, on the
// embedded store where they need one.
func TestScript(t *testing.T) { scripts(t, nil, "testdata/script") }

// TestScriptSQLite runs what must hold on every store on the embedded one
// (S19 S22 S23 S25 S26), and what no store can change.
func TestScriptSQLite(t *testing.T) {
	scripts(t, func(_ *testing.T, env *testscript.Env) {
		env.Setenv("ENGINE_DSN", "sqlite:"+filepath.Join(env.WorkDir, "state.db"))
	}, "testdata/both", "testdata/sqlite")
}

// TestScriptPostgres runs what must hold on every store on PostgreSQL.
func TestScriptPostgres(t *testing.T) {
	scripts(t, func(t *testing.T, env *testscript.Env) {
		env.Setenv("ENGINE_DSN", database(t, migrated()))
		env.Setenv("ENGINE_ENCRYPTION_KEY", goldenKey)
	}, "testdata/both")
}

// TestScriptDatabase runs what is about PostgreSQL only, on an empty database.
func TestScriptDatabase(t *testing.T) {
	scripts(t, func(t *testing.T, env *testscript.Env) {
		env.Setenv("ENGINE_DSN", database(t, "template1"))
	}, "testdata/postgres")
}

// goldenKey sealed the states in testdata/version/state.
const goldenKey = "AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA="

// TestStateOfVersion010 opens an embedded state and a database that version 0.1.0
// has left, with runs in many states (S22, S26).
func TestStateOfVersion010(t *testing.T) {
	open := func(t *testing.T, store string, dsn func(t *testing.T, dir string) (driver, source, dsn string)) {
		scripts(t, func(t *testing.T, env *testscript.Env) {
			text, err := os.ReadFile(filepath.Join("testdata", "version", "state", store+"-0.1.0.sql"))
			if err != nil {
				t.Fatal(err)
			}
			driver, source, dsn := dsn(t, env.WorkDir)
			if err := execSQL(t.Context(), driver, source, string(text)); err != nil {
				t.Fatal(err)
			}
			if store == "postgres" {
				if _, _, err := postgres.Migrate(t.Context(), dsn); err != nil {
					t.Fatal(err)
				}
			}
			agents, err := filepath.Abs("testdata/version/agents")
			if err == nil { // the agent there starts this one
				err = os.Symlink(filepath.Join(os.Getenv(envAgents), "engine-agent-mock"), filepath.Join(env.WorkDir, "golden-agent"))
			}
			if err != nil {
				t.Fatal(err)
			}
			env.Setenv("ENGINE_PLUGIN_DIR", agents)
			env.Setenv("ENGINE_DSN", dsn)
			env.Setenv("ENGINE_ENCRYPTION_KEY", goldenKey)
		}, "testdata/version")
	}
	t.Run("sqlite", func(t *testing.T) {
		open(t, "sqlite", func(t *testing.T, dir string) (driver, source, dsn string) {
			file := filepath.Join(dir, "state.db")
			if err := os.WriteFile(file, nil, 0o600); err != nil {
				t.Fatal(err)
			}
			return "sqlite", file, "sqlite:" + file
		})
	})
	t.Run("postgres", func(t *testing.T) {
		open(t, "postgres", func(t *testing.T, _ string) (driver, source, dsn string) {
			dsn = database(t, "template1")
			return "postgres", dsn, dsn
		})
	})
}

// scripts runs the scripts of some directories. setup prepares each of them; nil = nothing
// more to prepare.
func scripts(t *testing.T, setup func(*testing.T, *testscript.Env), dirs ...string) {
	t.Parallel()
	var files []string
	for _, dir := range dirs {
		found, err := filepath.Glob(filepath.Join(dir, "*.txtar"))
		if err != nil || len(found) == 0 {
			t.Fatalf("no scripts in %s: %v", dir, err)
		}
		files = append(files, found...)
	}
	testscript.Run(t, testscript.Params{
		Files:               files,
		RequireExplicitExec: true,
		RequireUniqueNames:  true,
		UpdateScripts:       os.Getenv("UPDATE_SCRIPTS") != "",
		Setup: func(env *testscript.Env) error {
			agents := os.Getenv(envAgents)
			env.Setenv("ENGINE_PLUGIN_DIR", agents)
			env.Setenv("AGENTS", agents)
			env.Setenv("HOME", filepath.Join(env.WorkDir, "home"))
			env.Setenv("LEDGER", filepath.Join(env.WorkDir, "ledger"))
			addJobs(env)
			if setup != nil {
				setup(t, env)
			}
			return nil
		},
		Cmds: commands,
	})
}

// template is the name of a database with today's schema. Databases are copied from it,
// because a copy takes a tenth of the time of a migration.
var template = "template_" + strings.ToLower(rand.Text())

// migrated makes the template at the first call, and returns its name.
var migrated = sync.OnceValue(func() string {
	ctx, server := context.Background(), os.Getenv(envServer)
	err := execSQL(ctx, "postgres", server, "CREATE DATABASE "+template)
	if err == nil {
		_, _, err = postgres.Migrate(ctx, within(server, template))
	}
	if err != nil {
		panic(err)
	}
	return template
})

// database makes a copy of a database, and returns its DSN. It is dropped at the end of the
// test.
func database(t *testing.T, template string) string {
	t.Helper()
	server, ctx := os.Getenv(envServer), context.WithoutCancel(t.Context())
	name := "cli_" + strings.ToLower(rand.Text())
	if err := execSQL(ctx, "postgres", server, "CREATE DATABASE "+name+" TEMPLATE "+template); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := execSQL(ctx, "postgres", server, "DROP DATABASE "+name+" WITH (FORCE)"); err != nil {
			t.Error(err)
		}
	})
	return within(server, name)
}

// within returns the DSN of another database of the server.
func within(server, name string) string {
	u, err := url.Parse(server)
	if err != nil {
		panic(envServer + " is not a URL")
	}
	u.Path = "/" + name
	return u.String()
}

func execSQL(ctx context.Context, driver, dsn, text string) (err error) {
	db, err := sql.Open(driver, dsn)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, db.Close()) }()
	_, err = db.ExecContext(ctx, text)
	return err
}
