package engine_test

import (
	"context"
	"errors"
	"go/ast"
	"go/parser"
	"go/token"
	"slices"
	"strconv"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/saga-engine/engine/engine/internal/cluster"
	"github.com/saga-engine/engine/engine/machine"
	"github.com/saga-engine/engine/engine/machine/status"
)

// S36, S37, S44: one pass tells every run that is due that time has passed,
// and tells nothing else.
func TestSupervisorScanTellsWhatIsDue(t *testing.T) {
	var told []status.RunID
	s := cluster.NewSupervisor(
		func(context.Context) ([]status.RunID, time.Duration, error) {
			return []status.RunID{3, 1, 2}, -1, nil
		},
		func(_ context.Context, run status.RunID, e machine.Event) error {
			if e != (machine.TimePassed{}) {
				t.Errorf("delivered %T, want TimePassed", e)
			}
			told = append(told, run)
			if run == 1 {
				return errors.New("out of reach")
			}
			return nil
		}, cluster.SupervisorOptions{})
	n, err := s.Scan(t.Context())
	if n != 2 || err == nil || !strings.Contains(err.Error(), "run r-1") {
		t.Errorf("Scan = %d, %v, want 2 and an error that names run 1", n, err)
	}
	if want := []status.RunID{3, 1, 2}; !slices.Equal(told, want) {
		t.Errorf("told %v, want %v: one failure must not hide the others", told, want)
	}
}

// S36, S47, S74, S76: the pause grows while nothing is found and falls back
// when something is; a known time is met exactly.
func TestSupervisorPauseAdapts(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		start := time.Now()
		var passes []time.Duration
		due := start.Add(2 * time.Second) // known from the fourth pass on
		ctx, cancel := context.WithTimeout(t.Context(), 9*time.Second)
		defer cancel()
		s := cluster.NewSupervisor(
			func(context.Context) ([]status.RunID, time.Duration, error) {
				passes = append(passes, time.Since(start))
				switch {
				case len(passes) < 4:
					return nil, -1, nil
				case time.Now().Before(due):
					return nil, time.Until(due), nil
				case time.Now().Equal(due):
					return []status.RunID{1}, -1, nil
				}
				return nil, -1, nil
			},
			func(context.Context, status.RunID, machine.Event) error { return nil },
			cluster.SupervisorOptions{MinScan: 100 * time.Millisecond, MaxScan: 3 * time.Second})
		if err := s.Run(ctx); !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("Run = %v, want the context's end", err)
		}
		want := []time.Duration{0, 200, 600, 1400, 2000, 2100, 2300, 2700, 3500, 5100, 8100}
		for i := range want {
			want[i] *= time.Millisecond
		}
		if !slices.Equal(passes, want) {
			t.Errorf("passes at %v, want %v", passes, want)
		}
	})
}

// S43: the Supervisor knows no business logic: of ours it imports only the
// machine, for the event and the names of states, and the store, for the name of a run. It names no type
// of dsl or sdk.
func TestSupervisorKnowsNoBusinessLogic(t *testing.T) {
	f, err := parser.ParseFile(token.NewFileSet(), "internal/cluster/supervisor.go", nil, 0)
	if err != nil {
		t.Fatal(err)
	}
	const ours = "github.com/saga-engine/engine/"
	for _, imp := range f.Imports {
		path, err := strconv.Unquote(imp.Path.Value)
		if err != nil {
			t.Fatal(err)
		}
		if strings.HasPrefix(path, ours) && path != ours+"engine/machine" && path != ours+"engine/machine/status" && path != ours+"engine/store" && path != ours+"engine/store/naming" {
			t.Errorf("supervisor.go imports %s", path)
		}
	}
	ast.Inspect(f, func(n ast.Node) bool {
		if sel, ok := n.(*ast.SelectorExpr); ok {
			used := map[string][]string{"machine": {"RunID", "Event", "TimePassed"}, "store": {"RunName"}}
			if id, ok := sel.X.(*ast.Ident); ok && used[id.Name] != nil && !slices.Contains(used[id.Name], sel.Sel.Name) {
				t.Errorf("supervisor.go uses %s.%s", id.Name, sel.Sel.Name)
			}
		}
		return true
	})
}
