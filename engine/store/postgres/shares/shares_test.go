package shares_test

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"sync"
	"testing"
	"testing/fstest"
	"time"

	"github.com/saga-engine/engine/dsl"
	"github.com/saga-engine/engine/engine"
	"github.com/saga-engine/engine/engine/internal/pgtest"
	"github.com/saga-engine/engine/engine/invoke"
	"github.com/saga-engine/engine/engine/machine"
	"github.com/saga-engine/engine/engine/machine/status"
	"github.com/saga-engine/engine/engine/store"
	"github.com/saga-engine/engine/engine/store/postgres"
	"github.com/saga-engine/engine/engine/store/quota"
	"github.com/saga-engine/engine/sdk"
	"github.com/saga-engine/engine/sdk/schema"
)

func TestMain(m *testing.M) { os.Exit(pgtest.Main(m)) }

func open(t *testing.T, dsn string) *postgres.Store {
	t.Helper()
	s, err := postgres.Open(t.Context(), dsn, postgres.Options{})
	if err != nil {
		t.Fatalf("open: %v", err)
	}
	t.Cleanup(func() {
		if err := s.Close(); err != nil {
			t.Errorf("close: %v", err)
		}
	})
	return s
}

func migrated(t *testing.T) string {
	t.Helper()
	dsn := pgtest.DSN(t)
	if _, _, err := postgres.Migrate(t.Context(), dsn); err != nil {
		t.Fatalf("migrate: %v", err)
	}
	return dsn
}

// A service is an Invoker that counts the calls in flight of all engines.
type service struct {
	mu               sync.Mutex
	now, most, total int
}

// Invoke answers after a moment.
func (s *service) Invoke(context.Context, invoke.Call) (sdk.Reply, error) {
	s.mu.Lock()
	s.now++
	s.total++
	s.most = max(s.most, s.now)
	s.mu.Unlock()
	time.Sleep(5 * time.Millisecond) // the time that the service works; no check depends on it
	s.mu.Lock()
	s.now--
	s.mu.Unlock()
	return sdk.Reply{Outcome: sdk.OutcomeResult, Output: []byte("{}")}, nil
}

// A plenty is a Capacity without limits of its own.
type plenty struct{}

func (plenty) Slot(invoke.AgentSpec) machine.Slot { return machine.Slot{Free: 1 << 20} }
func (plenty) Reserve(invoke.AgentSpec, int) bool { return true }
func (plenty) Release(invoke.AgentSpec, int)      {}
func (plenty) OnFree(func(string))                {}

// Engines with connections of their own to one database keep an agent's limits together, and all
// of them get on.
func TestLimitsOfEnginesOnOneDatabase(t *testing.T) {
	const most, engines, runs = 3, 3, 30
	dsn := migrated(t)
	def := define(t, fmt.Sprintf(`
agent "far" {
  max_concurrency = %d
  rate_limit      = "500/s"
}
workflow "w" {
  deadline = "10m"
  step "a" {
    action       = agent.far.call
    compensation = "none"
  }
  step "b" {
    depends_on   = [step.a]
    action       = agent.far.call
    compensation = "none"
  }
}`, most))
	far := &service{}
	var nodes []*engine.Node
	var ended []chan error
	for range engines {
		n, err := engine.NewNode(engine.Config{
			Store: open(t, dsn), Invoker: far, Capacity: plenty{}, Logger: slog.New(slog.DiscardHandler),
			Options: engine.Options{Address: t.Name()},
		})
		if err != nil {
			t.Fatalf("NewNode: %v", err)
		}
		ctx, cancel := context.WithCancel(t.Context())
		done := make(chan error, 1)
		go func() { done <- n.Run(ctx) }()
		t.Cleanup(cancel)
		select {
		case <-n.Ready():
		case err := <-done:
			t.Fatalf("Run: %v", err)
		}
		nodes, ended = append(nodes, n), append(ended, done)
	}
	type started struct {
		n   *engine.Node
		run status.RunID
	}
	var all []started
	for _, n := range nodes {
		for range runs {
			s, err := n.Submit(t.Context(), engine.Submission{Definition: def, Workflow: "w", Vars: dsl.Value{}, By: "test"})
			if err != nil {
				t.Fatalf("Submit: %v", err)
			}
			all = append(all, started{n, s.Run})
		}
	}
	for _, s := range all {
		st, err := s.n.Wait(t.Context(), s.run)
		if err != nil {
			t.Fatalf("Wait: %v", err)
		}
		if got := st.Status(); got != status.RunSucceeded {
			t.Errorf("run %d is %s", s.run, got)
		}
	}
	far.mu.Lock()
	defer far.mu.Unlock()
	if far.most > most || far.total != 2*engines*runs {
		t.Errorf("%d calls, %d in flight at once; want %d calls and at most %d in flight", far.total, far.most, 2*engines*runs, most)
	}
	for i, n := range nodes {
		n.StopNow()
		if err := <-ended[i]; !errors.Is(err, engine.ErrStopping) {
			t.Errorf("Run = %v", err)
		}
	}
}

// An engine that has left the store gets nothing, and its slots count until their time has passed.
func TestEngineThatHasLeft(t *testing.T) {
	dsn := migrated(t)
	s, other := open(t, dsn), open(t, dsn)
	join := func(s *postgres.Store) store.EngineID {
		id, err := s.Join(t.Context(), "test", time.Hour, 1)
		if err != nil {
			t.Fatal(err)
		}
		return id
	}
	a, b := join(s), join(other)
	ask := quota.SlotAsk{Limit: "l", Most: 1, Want: 1, Keep: time.Hour}
	if _, err := s.ShareSlots(t.Context(), a, ask); err != nil {
		t.Fatal(err)
	}
	if err := s.Leave(t.Context(), a); err != nil {
		t.Fatal(err)
	}
	if _, err := s.ShareSlots(t.Context(), a, ask); !errors.Is(err, store.ErrFenced) {
		t.Errorf("an engine that has left: err = %v, want ErrFenced", err)
	}
	if got, err := other.ShareSlots(t.Context(), b, ask); err != nil || got.Slots != 0 {
		t.Errorf("another engine got %+v, %v while the slot still counts", got, err)
	}
}

func define(t *testing.T, source string) *dsl.Definition {
	t.Helper()
	m, diags := dsl.Parse(fstest.MapFS{"main.hcl": {Data: []byte(source)}}, dsl.ParseOptions{})
	if diags.HasErrors() {
		t.Fatalf("parse: %v", diags.Err())
	}
	def, diags := dsl.Link(m, map[string]dsl.AgentBinary{"far": {Version: "1.0.0", Checksum: "00", Schema: schema.Schema{
		Name: "far", Version: "1.0.0", Actions: map[string]schema.Action{"call": {Idempotent: true}},
	}}})
	if diags.HasErrors() {
		t.Fatalf("link: %v", diags.Err())
	}
	return def
}
