package engines

import (
	"errors"
	"fmt"
	"maps"
	"math"
	"slices"
	"strconv"
	"strings"

	"github.com/spf13/cobra"

	"github.com/saga-engine/engine/engine"
	"github.com/saga-engine/engine/engine/machine"
	"github.com/saga-engine/engine/sdk/plugin"
)

// Ceilings hold the limits that --limit sets. docs/limits.md explains each.
type Ceilings struct {
	run       machine.Ceilings
	memory    int64 // engine.Options.MaxRunMemory, in bytes; 0 = the default
	processes int   // largest number of agent processes; 0 = the default
	agent     agentLimits
	given     []string
}

// agentLimits are the limits of each agent process; 0 = the default.
type agentLimits struct {
	memory         int64
	threads, files int
}

// Add adds the flag --limit to a command.
func (c *Ceilings) Add(cmd *cobra.Command) {
	cmd.Flags().Var(c, "limit", "changes a limit, such as instances=20000 or journal=1GiB; docs/limits.md lists them; may be repeated")
}

// named returns a map. Each key is the name of a ceiling, and its value is the function that sets
// this ceiling.
func (c *Ceilings) named() map[string]func(int64) {
	return map[string]func(int64){
		"instances":   func(n int64) { c.run.Instances = int(n) },
		"records":     func(n int64) { c.run.Records = int(n) },
		"journal":     func(n int64) { c.run.Journal = n },
		"values":      func(n int64) { c.run.Values = n },
		"checkpoints": func(n int64) { c.run.Checkpoints = n },
		"memory":      func(n int64) { c.memory = n },
		"processes":   func(n int64) { c.processes = int(n) },

		"agent_memory":  func(n int64) { c.agent.memory = n },
		"agent_threads": func(n int64) { c.agent.threads = int(n) },
		"agent_files":   func(n int64) { c.agent.files = int(n) },
	}
}

// Set parses text as NAME=VALUE and sets the ceiling with that name. See pflag.Value.
func (c *Ceilings) Set(text string) error {
	name, value, ok := strings.Cut(text, "=")
	set := c.named()[name]
	switch {
	case !ok:
		return errors.New("it is written NAME=VALUE, such as instances=20000")
	case set == nil:
		return fmt.Errorf("there is no ceiling %q; there are %s", name, strings.Join(slices.Sorted(maps.Keys(c.named())), ", "))
	}
	n, err := parseAmount(value)
	if err != nil {
		return fmt.Errorf("%s: %w", name, err)
	}
	set(n)
	if err := c.run.Validate(); err != nil {
		return fmt.Errorf("%s: %w", name, err)
	}
	if files := c.agent.files; files != 0 && files < plugin.MinFiles {
		return fmt.Errorf("%s must be at least %d: an agent and its keeper need as many files to start", name, plugin.MinFiles)
	}
	c.given = append(c.given, text)
	return nil
}

// String returns the flag's text, as the user wrote it. See pflag.Value.
func (c *Ceilings) String() string { return strings.Join(c.given, ",") }

// Type returns the name that help texts show for the flag's value. See pflag.Value.
func (c *Ceilings) Type() string { return "NAME=VALUE" }

// units are the units of bytes that may follow a number.
var units = []struct {
	name string
	size int64
}{{"KiB", 1 << 10}, {"MiB", 1 << 20}, {"GiB", 1 << 30}}

// parseAmount parses a number above zero. A number of bytes may end in a unit.
func parseAmount(text string) (int64, error) {
	digits, unit := text, int64(1)
	for _, u := range units {
		if d, ok := strings.CutSuffix(text, u.name); ok {
			digits, unit = d, u.size
		}
	}
	n, err := strconv.ParseInt(digits, 10, 64)
	switch {
	case err != nil || n <= 0:
		return 0, fmt.Errorf("%q is no number above zero; bytes may be written 512KiB, 64MiB or 1GiB", text)
	case n > math.MaxInt64/unit || n*unit > 1<<40:
		return 0, fmt.Errorf("%s is too much; at most 1024GiB", text)
	}
	return n * unit, nil
}

// To returns a copy of o with the ceilings for runs and for memory. The other ceilings are for
// agents: NewPool uses them.
func (c *Ceilings) To(o engine.Options) engine.Options {
	o.Ceilings, o.MaxRunMemory = c.run, c.memory
	return o
}
