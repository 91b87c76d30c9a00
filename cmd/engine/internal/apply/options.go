package apply

import (
	"strings"
	"time"

	"github.com/saga-engine/engine/cmd/engine/internal/cli"
	"github.com/saga-engine/engine/cmd/engine/internal/engines"
	"github.com/saga-engine/engine/cmd/engine/internal/module"
	"github.com/saga-engine/engine/engine/store/naming"
	"github.com/saga-engine/engine/engine/store/replies"
)

// applyLease is the lease of the engine of `engine apply`. It is shorter than the lease of
// `engine serve`: if the command is killed, the user probably starts it again at once.
const applyLease = 10 * time.Second

// Options are the flags of apply.
type Options struct {
	Workflow string
	Values   []module.Value
	RunID    string
	Confirm  bool
	Only     bool
	Detach   bool
	Each     string // file with one set of values on each line; "" = one run
	EachKey  string // variable whose value names the run of a line; "" = a hash of the line
	// If the run has begun no step when this time has passed, the run fails; 0 = no limit.
	StartIn  time.Duration
	Priority int           // priority of the run; NoPriority = as the workflow says
	Wait     time.Duration // longest time to wait for the run; 0 = until the run has ended
	Agents   module.AgentFlags
	Ceilings engines.Ceilings

	ReplyTo     string // sink of the replies; "" = none
	Correlation string
	ReplySinks  string // file with webhooks; "" = none
}

// NoPriority is the value of Options.Priority if the flag is not given.
const NoPriority = -1

// check returns an error if a flag has an impossible value, or if two flags contradict each
// other.
func (o *Options) check(a *cli.App) error {
	switch {
	case a.JSON && o.Confirm:
		return cli.Failed("Invalid flag", "--confirm cannot be combined with --json.")
	case o.Detach && (o.Wait > 0 || o.Only):
		return cli.Failed("Invalid flag", "--detach waits for nothing and works on nothing: it cannot be combined with --wait-timeout or --only.")
	case o.Priority != NoPriority && (o.Priority < 0 || o.Priority > 100):
		return cli.Failed("Invalid flag", "--priority is from 0 to 100, not %d.", o.Priority)
	}
	if err := replies.Check(o.ReplyTo, o.Correlation); err != nil {
		return cli.Failed("Invalid flag", "--reply-to: %s.", err)
	}
	if _, given := naming.ParseRunName(o.RunID); given {
		return nil // may be the id of an existing run; Validate would refuse this id as a new name
	}
	if err := (naming.Names{Name: o.RunID}).Validate(); err != nil {
		return cli.Failed("Invalid flag", "--run-id: %s.", strings.TrimPrefix(err.Error(), "engine: "))
	}
	return nil
}

// startBy returns the time by which the first step of the run must begin; zero = there is no such
// time.
func (o *Options) startBy() time.Time {
	if o.StartIn == 0 {
		return time.Time{}
	}
	return time.Now().Add(o.StartIn)
}

// priority returns the priority of the run; nil = as the workflow says.
func (o *Options) priority() *int {
	if o.Priority == NoPriority {
		return nil
	}
	return &o.Priority
}
