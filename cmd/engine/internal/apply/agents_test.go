package apply

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/saga-engine/engine/dsl"
	"github.com/saga-engine/engine/engine/invoke"
)

// patience is how long tests wait for something that must happen.
const patience = 60 * time.Second

// meeting is a Checker whose agents start only when all of them are starting.
type meeting struct {
	missing atomic.Int64
	all     chan struct{}
	broken  string
}

func newMeeting(n int64, broken string) *meeting {
	m := &meeting{all: make(chan struct{}), broken: broken}
	m.missing.Store(n)
	return m
}

// Check waits for the others.
func (m *meeting) Check(ctx context.Context, spec invoke.AgentSpec) error {
	if m.missing.Add(-1) == 0 {
		close(m.all)
	}
	select {
	case <-m.all:
	case <-ctx.Done():
		return ctx.Err()
	}
	if spec.Name == m.broken {
		return errors.New("no such file")
	}
	return nil
}

func eightAgents() map[string]invoke.AgentSpec {
	specs := map[string]invoke.AgentSpec{}
	for n := range 8 {
		name := fmt.Sprintf("a%d", n)
		specs[name] = invoke.AgentSpec{Agent: &dsl.Agent{Name: name, Plugin: "mock"}}
	}
	return specs
}

// One agent does not wait for another to have started: with eight of them
// nothing would be on the screen for more than a second.
func TestAgentsStartTogether(t *testing.T) {
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	if err := startAgents(ctx, newMeeting(8, ""), eightAgents()); err != nil {
		t.Fatal(err)
	}
	err := startAgents(ctx, newMeeting(8, "a3"), eightAgents())
	if err == nil || !strings.Contains(err.Error(), `Agent "a3" cannot be used`) || strings.Contains(err.Error(), "a4") {
		t.Errorf("error = %v, want one about a3 alone", err)
	}
	ctx, cancel = context.WithCancel(ctx)
	cancel()
	if err := startAgents(ctx, newMeeting(9, ""), eightAgents()); !errors.Is(err, context.Canceled) {
		t.Errorf("error after the end = %v, want that of the context", err)
	}
}

func TestStartingText(t *testing.T) {
	for _, c := range []struct {
		n    int
		want string
	}{
		{1, "Starting 1 agent: a0."},
		{8, "Starting 8 agents: a0, a1, a2, a3, a4, a5, a6, a7."},
		{9, "Starting 9 agents: a0, a1, a2, a3, a4, a5, a6, a7 and 1 more."},
	} {
		var names []string
		for n := range c.n {
			names = append(names, fmt.Sprintf("a%d", n))
		}
		if got := startingText(names); got != c.want {
			t.Errorf("%d agents: %q, want %q", c.n, got, c.want)
		}
	}
}
