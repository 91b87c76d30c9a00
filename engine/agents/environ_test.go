package agents

import (
	"log/slog"
	"slices"
	"testing"

	"github.com/saga-engine/engine/dsl"
	"github.com/saga-engine/engine/engine/invoke"
)

// A definition that is older than the rule may name variables of the engine: its
// agent gets the others only.
func TestEnvironWithholdsWhatIsReserved(t *testing.T) {
	pool := &Pool{opts: Options{
		Logger:    slog.New(slog.DiscardHandler),
		LookupEnv: func(name string) (string, bool) { return "v-" + name, true },
	}}
	spec := invoke.AgentSpec{Agent: &dsl.Agent{Name: "a", Env: []string{"ENGINE_DSN", "HOME", "PGPASSWORD"}}}
	i := &instance{agent: &agent{pool: pool, spec: spec}, number: 1}
	if got := i.environ(); !slices.Equal(got, []string{"HOME=v-HOME"}) {
		t.Errorf("environment %q", got)
	}
}
