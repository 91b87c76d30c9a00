package engine_test

import (
	"testing"

	"github.com/saga-engine/engine/engine"
)

// Two definitions share an agent's processes, limits and breaker only where
// they ask for the same.
func TestAgentKeyTellsDefinitionsApart(t *testing.T) {
	key := func(settings string) string {
		t.Helper()
		def := define(t, `agent "shop" {`+settings+"\n}"+oneStep, newShop().agent)
		wf := def.Workflow("one")
		vars, diags := wf.Bind(nil)
		if diags.HasErrors() {
			t.Fatal(diags.Err())
		}
		specs, err := engine.AgentSpecs(wf, vars)
		if err != nil {
			t.Fatal(err)
		}
		return specs["shop"].Key
	}
	plain := key("")
	if again := key(""); again != plain {
		t.Errorf("keys of equal agents: %s and %s", plain, again)
	}
	seen := map[string]string{plain: "nothing set"}
	for _, settings := range []string{
		`env = ["A"]`, `env = ["A", "B"]`, `instances = 2`, `max_concurrency = 2`,
		"circuit_breaker {\n trip_after = 9\n}", "circuit_breaker {\n cool_down = \"7s\"\n}",
	} {
		k := key("\n" + settings)
		if other, ok := seen[k]; ok {
			t.Errorf("%s has the key of %s", settings, other)
		}
		seen[k] = settings
	}
}
