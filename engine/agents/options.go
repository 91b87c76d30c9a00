package agents

import (
	"errors"
	"log/slog"
	"os"
	"time"

	"github.com/saga-engine/engine/engine/store"
	"github.com/saga-engine/engine/sdk/plugin"
)

// defaultMaxProcesses is the default of Options.MaxProcesses. One process needs approximately
// 17 MiB of memory.
const defaultMaxProcesses = 64

// Options are the settings of a Pool. Catalog is required: without it, the Pool finds no agent.
// Every other field that is zero gets its default.
type Options struct {
	Catalog *Catalog
	// Secrets returns the secret for a reference such as "env:X" in a configuration. The Pool
	// calls it right before a process starts. nil = no reference can be resolved.
	Secrets func(ref string) (string, error)
	// LookupEnv returns a variable of the engine's own environment. The Pool passes a variable
	// to an agent if the agent block allows it. nil = os.LookupEnv.
	LookupEnv func(name string) (string, bool)
	Observer  Observer     // nil = there is no observer
	Logger    *slog.Logger // receives the logs of agents, and messages about agents; nil = nothing is logged
	// LogSink receives every line that an agent logs or prints while it works on a call of a run.
	// The lines are of any level and contain no sensitive values. If a printed line may belong to
	// several runs, LogSink is called once for each of at most 32 runs. It is called from several
	// goroutines and must not block. engine.LogKeeper.Keep can be used as LogSink. nil = there is
	// no sink.
	LogSink func(store.LogLine)

	// MaxProcesses is the largest number of processes of all agents together. If it is
	// reached, the calls of an agent without a process are held until a process of another
	// agent has ended. 0 = defaultMaxProcesses.
	MaxProcesses int

	// MaxMemory (in bytes), MaxThreads and MaxFiles limit each process, including the
	// processes that it starts; see plugin.OpenOptions. 0 = the default of package plugin.
	MaxMemory  int64
	MaxThreads int
	MaxFiles   int

	PayloadLimit int           // largest size of an input or an output, in bytes; 0 = plugin.DefaultPayloadLimit
	TempDir      string        // directory for private directories of processes; "" = os.TempDir
	StartTimeout time.Duration // how long a process may take until it is ready; 0 = 15 s
	// CloseGrace is how long a process may take to end in an orderly way. A process that takes
	// longer is killed. 0 = 3 s.
	CloseGrace time.Duration

	// Unary makes the Pool use the old protocol, which sends each call on a separate stream.
	// The present protocol sends calls in batches. Benchmarks use Unary to compare the two.
	Unary bool

	PingInterval time.Duration // time between two requests for a sign of life; 0 = 15 s
	// PingTimeout is how long a process may take to give a sign of life. If a process takes longer,
	// another process replaces it: the slow process gets no more calls, and ends after its present
	// calls. If four signs of life in a row are missing, the process is killed. 0 = 10 s.
	PingTimeout time.Duration
	// SlowAfter is how many calls in a row a process may leave without an answer in time. If the
	// process reaches this number, and another process of the agent has answered meanwhile, the
	// process is replaced. 0 = 5, negative = no process is replaced for this reason.
	SlowAfter int
	// IdleAfter is how long an agent must have had no call before the Pool ends the agent's
	// processes. The next call starts them again. 0 = 5 min, negative = the Pool never ends
	// them for this reason.
	IdleAfter time.Duration

	// MinBackoff and MaxBackoff are the shortest and the longest pause before the next start of a
	// process. There is such a pause if the last start failed, or if the last process ran for less
	// than Stable. 0 = 200 ms for MinBackoff, and 30 s for MaxBackoff.
	MinBackoff, MaxBackoff time.Duration
	// Stable is a duration. If a process ran at least for this duration before it ended, the
	// next process starts without a pause. 0 = 10 s.
	Stable time.Duration
	// RetrySecret is the pause before the pool tries again to resolve a secret; 0 = 10 s.
	RetrySecret time.Duration
}

func (o Options) withDefaults() Options {
	set := func(d *time.Duration, def time.Duration) {
		if *d == 0 {
			*d = def
		}
	}
	set(&o.StartTimeout, 15*time.Second)
	set(&o.CloseGrace, 3*time.Second)
	set(&o.PingInterval, 15*time.Second)
	set(&o.PingTimeout, 10*time.Second)
	set(&o.IdleAfter, 5*time.Minute)
	if o.SlowAfter == 0 {
		o.SlowAfter = 5
	}
	set(&o.MinBackoff, 200*time.Millisecond)
	set(&o.MaxBackoff, 30*time.Second)
	set(&o.Stable, 10*time.Second)
	set(&o.RetrySecret, 10*time.Second)
	if o.MaxProcesses == 0 {
		o.MaxProcesses = defaultMaxProcesses
	}
	if o.PayloadLimit == 0 {
		o.PayloadLimit = plugin.DefaultPayloadLimit
	}
	if o.LookupEnv == nil {
		o.LookupEnv = os.LookupEnv
	}
	if o.Secrets == nil {
		o.Secrets = func(string) (string, error) { return "", errors.New("this engine resolves no secrets") }
	}
	if o.Observer == nil {
		o.Observer = NoObserver{}
	}
	if o.Logger == nil {
		o.Logger = slog.New(slog.DiscardHandler)
	}
	if o.Catalog == nil {
		o.Catalog = NewCatalog(CatalogOptions{})
	}
	return o
}

// protocol returns the newest version of the protocol that a process may use; 0 = any version.
func (o Options) protocol() int {
	if o.Unary {
		return plugin.ProtocolUnary
	}
	return 0
}

// backoff returns the pause before the next start of a process. n is the number of processes in a
// row that failed to start or ran for less than o.Stable, from 1. The pause doubles with each of
// them, up to o.MaxBackoff.
func (o Options) backoff(n int) time.Duration {
	d := o.MinBackoff
	for ; n > 1 && d < o.MaxBackoff; n-- {
		d *= 2
	}
	return min(d, o.MaxBackoff)
}
