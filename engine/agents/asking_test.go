//go:build unix

package agents_test

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/saga-engine/engine/engine/agents"
)

// A caller is a context that a test ends with the error it wants, and that tells
// when somebody begins to wait for its end.
type caller struct {
	context.Context
	ended   chan struct{}
	waiting chan struct{}
	once    sync.Once
	mu      sync.Mutex // protects the field below
	why     error
}

func newCaller(t *testing.T) *caller {
	return &caller{Context: t.Context(), ended: make(chan struct{}), waiting: make(chan struct{})}
}

func (c *caller) Done() <-chan struct{} {
	c.once.Do(func() { close(c.waiting) })
	return c.ended
}

func (c *caller) Err() error {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.why
}

func (c *caller) end(why error) {
	c.mu.Lock()
	c.why = why
	c.mu.Unlock()
	close(c.ended)
}

// slowToDescribe installs an agent that describes itself once a line was written
// to the returned fifo. Opening the fifo waits until the agent was asked.
func slowToDescribe(t *testing.T, dir string) (path, fifo string) {
	t.Helper()
	path, fifo = filepath.Join(dir, "engine-agent-a"), filepath.Join(dir, "answer")
	if err := syscall.Mkfifo(fifo, 0o600); err != nil {
		t.Fatal(err)
	}
	text := "#!/bin/sh\necho x >> '" + path + ".calls'\nread answer < '" + fifo + "'\ncat <<'EOF'\n" + description("a", "1.0.0", 1) + "\nEOF\n"
	if err := os.WriteFile(path, []byte(text), 0o755); err != nil {
		t.Fatal(err)
	}
	return path, fifo
}

// soon fails the test if done does not come.
func soon[T any](t *testing.T, what string, done <-chan T) (v T) {
	t.Helper()
	select {
	case v = <-done:
	case <-time.After(patience):
		t.Fatalf("waited %s for %s", patience, what)
	}
	return v
}

// The caller that asks a binary first may go before the answer is there, because
// its command was interrupted or its own time is up. The others get the answer all
// the same, and the binary is asked once.
func TestDescribeOutlivesTheFirstCaller(t *testing.T) {
	for _, why := range []error{context.Canceled, context.DeadlineExceeded} {
		dir := t.TempDir()
		path, fifo := slowToDescribe(t, dir)
		c := agents.NewCatalog(agents.CatalogOptions{Search: agents.SearchOptions{PluginDirs: []string{dir}}})
		ask := func(ctx context.Context) <-chan error {
			done := make(chan error, 1)
			go func() {
				b, err := c.Find(ctx, "a", "")
				if err == nil && b.Version != "1.0.0" {
					err = errors.New("version " + b.Version)
				}
				done <- err
			}()
			return done
		}
		first, second := newCaller(t), newCaller(t)
		one := ask(first)
		answer, err := os.OpenFile(fifo, os.O_WRONLY, 0)
		if err != nil {
			t.Fatal(err)
		}
		defer answer.Close()
		two := ask(second)
		soon(t, "the second caller", second.waiting)
		first.end(why)
		if err := soon(t, "the first caller", one); !errors.Is(err, why) {
			t.Errorf("the first caller got %v, want %v", err, why)
		}
		if _, err := answer.WriteString("go\n"); err != nil {
			t.Errorf("the process was ended with its first caller: %v", err)
		}
		if err := soon(t, "the second caller", two); err != nil {
			t.Errorf("%v of the first caller became the second one's error: %v", why, err)
		}
		if err := soon(t, "a later caller", ask(t.Context())); err != nil {
			t.Errorf("%v of the first caller is remembered: %v", why, err)
		}
		if calls, err := os.ReadFile(path + ".calls"); err != nil || strings.Count(string(calls), "x") != 1 {
			t.Errorf("asked %q times, %v, want once", calls, err)
		}
	}
}

// When all callers have gone the process that was asked has ended, and their end
// says nothing about the binary: it is asked again.
func TestDescribeEndsWithItsLastCaller(t *testing.T) {
	for _, why := range []error{context.Canceled, context.DeadlineExceeded} {
		dir := t.TempDir()
		path, fifo := slowToDescribe(t, dir)
		c := agents.NewCatalog(agents.CatalogOptions{Search: agents.SearchOptions{PluginDirs: []string{dir}}})
		only, done := newCaller(t), make(chan error, 1)
		go func() { _, err := c.Find(only, "a", ""); done <- err }()
		unread, err := os.OpenFile(fifo, os.O_WRONLY, 0)
		if err != nil {
			t.Fatal(err)
		}
		defer unread.Close()
		only.end(why)
		if err := soon(t, "the only caller", done); !errors.Is(err, why) {
			t.Errorf("err = %v, want %v", err, why)
		}
		if _, err := unread.WriteString("go\n"); !errors.Is(err, syscall.EPIPE) {
			t.Errorf("the process goes on with no caller: %v", err)
		}
		go func() { _, err := c.Find(t.Context(), "a", ""); done <- err }()
		answer, err := os.OpenFile(fifo, os.O_WRONLY, 0)
		if err != nil {
			t.Fatal(err)
		}
		defer answer.Close()
		if _, err := answer.WriteString("go\n"); err != nil {
			t.Error(err)
		}
		if err := soon(t, "the next caller", done); err != nil {
			t.Errorf("%v of an earlier caller is remembered: %v", why, err)
		}
		if calls, err := os.ReadFile(path + ".calls"); err != nil || strings.Count(string(calls), "x") != 2 {
			t.Errorf("asked %q times, %v, want twice", calls, err)
		}
	}
}
