package agents

import (
	"errors"
	"log/slog"
	"os"
	"time"

	"github.com/saga-engine/engine/engine/store"
	"github.com/saga-engine/engine/sdk/plugin"
)

// DefaultMaxProcesses is the default of Options.MaxProcesses. One process needs approximately
// 17 MiB of memory.
const DefaultMaxProcesses = 64

// Options are the settings of a Pool. Catalog is required. Every other zero field means its
// default.
type Options struct {
	Catalog *Catalog
	// Secrets resolves references such as "env:X" in configurations, right before a process
	// starts. nil = no reference can be resolved.
	Secrets func(ref string) (string, error)
	// LookupEnv reads the engine's own environment, for the names that an agent block
	// allows; nil = os.LookupEnv.
	LookupEnv func(name string) (string, bool)
	Observer  Observer     // nil = there is no observer
	Logger    *slog.Logger // receives the logs of agents, and messages about agents; nil = nothing is logged
	// LogSink receives every line that an agent logs or prints while it works on a call, of
	// any level and without sensitive values. If a line may belong to several runs, LogSink
	// is called once for each. It is called from several goroutines and must not block.
	// engine.LogKeeper.Keep can be used; nil = there is no sink.
	LogSink func(store.LogLine)

	// MaxProcesses is the largest number of processes, of all agents together, at the same
	// time. An agent without a process waits until a process of another agent ends; its calls
	// are held. 0 = DefaultMaxProcesses.
	MaxProcesses int

	// MaxMemory, MaxThreads and MaxFiles limit each process, including the processes that
	// it starts; see plugin.OpenOptions. 0 = the defaults of package plugin.
	MaxMemory  int64
	MaxThreads int
	MaxFiles   int

	PayloadLimit int           // largest size of an input or an output, in bytes; 0 = plugin.DefaultPayloadLimit
	TempDir      string        // directory for private directories of processes; "" = os.TempDir
	StartTimeout time.Duration // how long a process may take until it is ready; 0 = 15 s
	// How long a process may take for an orderly end before it is killed; 0 = 3 s.
	CloseGrace time.Duration

	// Unary makes the Pool use the old protocol, which sends every call on a stream of its
	// own. It is for comparisons. The present protocol sends calls in batches.
	Unary bool

	PingInterval time.Duration // time between two signs of life; 0 = 15 s
	// PingTimeout is how long a sign of life may take. A process that gives none in that
	// time is slow: it gets no more calls, is replaced, and ends after its calls. After
	// four missing signs in a row it is killed. 0 = 10 s.
	PingTimeout time.Duration
	// SlowAfter is the number of calls in a row that a process may fail to answer in time,
	// while another process of the agent answers. Then it is replaced. 0 = 5, negative =
	// never.
	SlowAfter int
	// IdleAfter is how long an agent must have had no call before its processes are ended.
	// The next call starts them again. 0 = 5 min, negative = never.
	IdleAfter time.Duration

	// MinBackoff and MaxBackoff limit the pause before a process is started again after a
	// failed start or a short life. 0 = 200 ms and 30 s.
	MinBackoff, MaxBackoff time.Duration
	// Stable is how long a process must have run so that it is started again without a
	// pause; 0 = 10 s.
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
		o.MaxProcesses = DefaultMaxProcesses
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

// protocol returns the newest version of the protocol that may be used; 0 = any.
func (o Options) protocol() int {
	if o.Unary {
		return plugin.ProtocolUnary
	}
	return 0
}

// backoff returns the pause before the next start, after n failed starts or short lives in a
// row.
func (o Options) backoff(n int) time.Duration {
	d := o.MinBackoff
	for ; n > 1 && d < o.MaxBackoff; n-- {
		d *= 2
	}
	return min(d, o.MaxBackoff)
}
