package main

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/saga-engine/engine/cmd/engine/internal/exit"
)

// snippetOrder is the workflow `order` of the snippets that submit runs.
const snippetOrder = `
workflow "order" {
  deadline = "1h"
  variable "id" { type = string }
  variable "total" { default = 1 }
  step "made" { value = "${var.id}: ${var.total}" }
}`

// The SQL, shell and JSON snippets of the language reference work as they stand there: programs submit
// runs, send events and take replies on PostgreSQL, and a person submits a run and sends a signal.
func TestOtherSnippetsOfTheReference(t *testing.T) {
	page, err := os.ReadFile("../../docs/language.md")
	if err != nil {
		t.Fatal(err)
	}
	dir, dsn := t.TempDir(), database(t, migrated())
	t.Setenv("ENGINE_PLUGIN_DIR", os.Getenv(envAgents))
	t.Setenv("ENGINE_DSN", dsn)
	t.Setenv("ENGINE_ENCRYPTION_KEY", goldenKey)
	t.Setenv("HOOKS_SECRET", strings.Repeat("s", 32))
	write := func(name, text string) {
		t.Helper()
		file := filepath.Join(dir, name)
		if err := os.MkdirAll(filepath.Dir(file), 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	do := func(args ...string) {
		t.Helper()
		if code, out, errs := command(t, append([]string{"--chdir", dir}, args...)...); code != exit.OK {
			t.Errorf("%q: exit code %d\n%s%s", args, code, out, errs)
		}
	}
	query := func(text string) {
		t.Helper()
		if err := execSQL(t.Context(), "postgres", dsn, text); err != nil {
			t.Errorf("%v\n%s", err, text)
		}
	}
	write("order/a.hcl", snippetOrder)
	write("wait/a.hcl", "workflow \"w\" {\n  deadline = \"1d\"\n"+snippets(t, page, "hcl")[0]+"}\n")
	write("shop.secret", strings.Repeat("x", 32))
	do("publish", "order")
	do("apply", "wait", "--detach", "--run-id", "order-7")
	query("CREATE TABLE orders (id text PRIMARY KEY, total numeric, state text)")

	for _, text := range snippets(t, page, "sql") {
		query(text)
	}
	query("DO $$ BEGIN ASSERT (SELECT count(*) FROM engine.events WHERE type = 'com.example.order.placed') = 1; ASSERT EXISTS (SELECT FROM orders WHERE id = 'o-1'); END $$")
	for _, text := range snippets(t, page, "sh") {
		for line := range strings.Lines(text) {
			words := shellWords(line)
			if words[0] != "engine" {
				t.Fatalf("%q is no command of engine", line)
			}
			do(words[1:]...)
		}
	}
	for _, text := range snippets(t, page, "json") {
		write("sinks.json", strings.ReplaceAll(text, "/etc/engine/shop.secret", filepath.Join(dir, "shop.secret")))
		do("apply", "order", "--detach", "--var", "id=o-2", "--reply-to", "webhook:shop", "--reply-sinks", "sinks.json")
	}
}

// snippets returns the snippets of a page in one language, in order. There must be at least one.
func snippets(t *testing.T, page []byte, language string) (out []string) {
	t.Helper()
	for _, m := range regexp.MustCompile("(?s)```"+language+"\n(.*?)```").FindAllSubmatch(page, -1) {
		out = append(out, string(m[1]))
	}
	if len(out) == 0 {
		t.Fatalf("the page has no snippet in %s", language)
	}
	return out
}

// shellWords splits a command line. A word may be in single quotes.
func shellWords(line string) (out []string) {
	for _, m := range regexp.MustCompile(`'([^']*)'|(\S+)`).FindAllStringSubmatch(line, -1) {
		out = append(out, m[1]+m[2])
	}
	return out
}
