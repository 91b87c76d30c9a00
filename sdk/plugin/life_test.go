//go:build unix

package plugin

import (
	"log/slog"
	"os"
	"strings"
	"syscall"
	"testing"
	"time"
)

// An agent that ends although the engine has not closed it says why, in the engine's log.
func TestAgentSaysWhyItEnds(t *testing.T) {
	book := newLogBook()
	p := open(t, OpenOptions{Logger: book.logger()})
	if err := syscall.Kill(p.Pid(), syscall.SIGTERM); err != nil {
		t.Fatal(err)
	}
	book.await(t, `msg="the agent ends" reason=terminated`)
}

// The reason delays the end of the process only for a moment if no process reads standard error.
func TestReasonDoesNotDelayTheEnd(t *testing.T) {
	r, w, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = r.Close(); _ = w.Close() })
	l := newLife("")
	l.logger = slog.New(slog.NewTextHandler(w, nil))
	done := make(chan struct{})
	go func() {
		l.sayWhy(strings.Repeat("x", 1<<20)) // more than a pipe holds
		close(done)
	}()
	select {
	case <-done:
	case <-time.After(5 * time.Second):
		t.Error("the process would never end")
	}
}
