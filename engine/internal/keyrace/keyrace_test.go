package keyrace

import (
	"os"
	"testing"

	"github.com/anishathalye/porcupine"

	"github.com/saga-engine/engine/engine/internal/pgtest"
	"github.com/saga-engine/engine/engine/machine/status"
	"github.com/saga-engine/engine/engine/store/goals"
	"github.com/saga-engine/engine/engine/store/memory"
	"github.com/saga-engine/engine/engine/store/naming"
	"github.com/saga-engine/engine/engine/store/postgres"
)

func TestMain(m *testing.M) { os.Exit(pgtest.Main(m)) }

var scopes = []naming.Scope{naming.ScopeGoal, naming.ScopeActive, naming.ScopeEver}

// T27 I11 I15 S97 S98 S99: 200 clients race for one key, in memory.
func TestRacesInMemory(t *testing.T) {
	for _, s := range scopes {
		t.Run(s.String(), func(t *testing.T) { Run(t, memory.New(memory.Options{}), s, clients, false) })
	}
}

// fewer is the number of clients that replace runs in memory. There an operation takes microseconds. So
// an operation whose goroutine must wait for a processor overlaps with hundreds of others, and the
// search for an order would take hours.
const fewer = clients / 10

// T27 I11 I15 S95: clients race for one key, in memory. Some of their runs replace the open run.
func TestReplacementsInMemory(t *testing.T) {
	for _, s := range scopes[:2] {
		t.Run(s.String(), func(t *testing.T) { Run(t, memory.New(memory.Options{}), s, fewer, true) })
	}
}

// T27 I11 I15 S95 S97 S98 S99: 200 clients race for one key, on PostgreSQL.
func TestRacesOnPostgres(t *testing.T) {
	for _, s := range scopes {
		t.Run(s.String(), func(t *testing.T) { Run(t, database(t), s, clients, false) })
	}
}

// T27 I11 I15 S95: 200 clients race for one key, on PostgreSQL. Some of their runs replace the open run.
func TestReplacementsOnPostgres(t *testing.T) {
	for _, s := range scopes[:2] {
		t.Run(s.String(), func(t *testing.T) { Run(t, database(t), s, clients, true) })
	}
}

// database opens an empty store in PostgreSQL.
func database(t *testing.T) *postgres.Store {
	dsn := pgtest.DSN(t)
	if _, _, err := postgres.Migrate(t.Context(), dsn); err != nil {
		t.Fatal(err)
	}
	st, err := postgres.Open(t.Context(), dsn, postgres.Options{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := st.Close(); err != nil {
			t.Error(err)
		}
	})
	return st
}

// The check finds answers that no order explains.
func TestCheckFindsFaults(t *testing.T) {
	op := func(at int64, in ask, out answer) porcupine.Operation {
		return porcupine.Operation{Input: in, Output: out, Call: at, Return: at}
	}
	first := op(1, ask{kind: submit, run: 1}, answer{run: 1, done: true})
	won := op(2, ask{kind: end, run: 1, to: status.RunSucceeded}, answer{done: true})
	undone := op(2, ask{kind: end, run: 1, to: status.RunCancelled}, answer{done: true})
	freed := op(3, ask{kind: reset}, answer{run: 1, done: true})
	second := op(4, ask{kind: submit, run: 2}, answer{run: 2, done: true})
	attached := op(4, ask{kind: submit, run: 2}, answer{run: 1})
	waits := op(2, ask{kind: replace, run: 2}, answer{run: 2, done: true})
	newer := op(3, ask{kind: replace, run: 3}, answer{run: 3, done: true})
	gone := op(4, ask{kind: end, run: 1, to: status.RunCancelled}, answer{done: true})
	starts := func(at int64, run status.RunID, done bool) porcupine.Operation {
		return op(at, ask{kind: admit, run: run}, answer{done: done})
	}
	for name, c := range map[string]struct {
		scope   naming.Scope
		history []porcupine.Operation
		want    porcupine.CheckResult
	}{
		"two open runs":                      {naming.ScopeGoal, []porcupine.Operation{first, second}, porcupine.Illegal},
		"a run after the goal":               {naming.ScopeGoal, []porcupine.Operation{first, won, second}, porcupine.Illegal},
		"a run after a reset":                {naming.ScopeGoal, []porcupine.Operation{first, won, freed, second}, porcupine.Ok},
		"no run after a reset":               {naming.ScopeGoal, []porcupine.Operation{first, won, freed, attached}, porcupine.Illegal},
		"a run after an undo":                {naming.ScopeGoal, []porcupine.Operation{first, undone, second}, porcupine.Ok},
		"attached to a run that is free":     {naming.ScopeGoal, []porcupine.Operation{first, undone, attached}, porcupine.Illegal},
		"a reset of an open run":             {naming.ScopeGoal, []porcupine.Operation{first, freed}, porcupine.Illegal},
		"two resets":                         {naming.ScopeGoal, []porcupine.Operation{first, won, freed, op(4, ask{kind: reset}, answer{run: 1, done: true})}, porcupine.Illegal},
		"active: a run after a success":      {naming.ScopeActive, []porcupine.Operation{first, won, second}, porcupine.Ok},
		"ever: a run after an undo":          {naming.ScopeEver, []porcupine.Operation{first, undone, second}, porcupine.Illegal},
		"ended twice":                        {naming.ScopeGoal, []porcupine.Operation{first, won, op(3, ask{kind: end, run: 1, to: status.RunCancelled}, answer{done: true})}, porcupine.Illegal},
		"a replacement":                      {naming.ScopeGoal, []porcupine.Operation{first, waits, starts(3, 2, false), gone, starts(5, 2, true)}, porcupine.Ok},
		"a replacement that starts too soon": {naming.ScopeGoal, []porcupine.Operation{first, waits, starts(3, 2, true)}, porcupine.Illegal},
		"a replacement after the goal":       {naming.ScopeGoal, []porcupine.Operation{first, waits, op(3, ask{kind: end, run: 1, to: status.RunSucceeded}, answer{done: true}), starts(5, 2, true)}, porcupine.Illegal},
		"a replacement of a free key":        {naming.ScopeGoal, []porcupine.Operation{first, undone, op(3, ask{kind: replace, run: 2}, answer{run: 2, done: true})}, porcupine.Illegal},
		"the newest replacement starts":      {naming.ScopeGoal, []porcupine.Operation{first, waits, newer, gone, starts(5, 2, false), starts(6, 3, true)}, porcupine.Ok},
		"an older replacement starts":        {naming.ScopeGoal, []porcupine.Operation{first, waits, newer, gone, starts(5, 2, true)}, porcupine.Illegal},
		"a run before the replacement":       {naming.ScopeGoal, []porcupine.Operation{first, waits, gone, op(5, ask{kind: submit, run: 4}, answer{run: 4, done: true})}, porcupine.Illegal},
		"an open run that looks reached":     {naming.ScopeGoal, []porcupine.Operation{first, op(2, ask{kind: look}, answer{run: 1, state: goals.Reached})}, porcupine.Illegal},
	} {
		if got := Check(c.scope, c.history); got != c.want {
			t.Errorf("%s: %s, want %s", name, got, c.want)
		}
	}
}
