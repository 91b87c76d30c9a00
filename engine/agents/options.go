package agents

import (
	"errors"
	"log/slog"
	"os"
	"time"

	"github.com/saga-engine/engine/engine/store"
	"github.com/saga-engine/engine/sdk/plugin"
)

// DefaultMaxProcesses is how many agent processes an engine runs at once: one
// takes about 17 MiB.
const DefaultMaxProcesses = 64

// Options are the settings of a Pool. Catalog is required; every other zero
// field means its default.
type Options struct {
	Catalog *Catalog
	// Secrets resolves references such as "env:X" in configurations, right
	// before a process starts. nil = none resolves.
	Secrets func(ref string) (string, error)
	// LookupEnv reads the engine's own environment, for the names that an
	// agent block allows; nil = os.LookupEnv.
	LookupEnv func(name string) (string, bool)
	Observer  Observer     // nil = nobody
	Logger    *slog.Logger // for what agents log, and about them; nil = nowhere
	// LogSink receives every line that an agent logs while it works on a call,
	// and what its process prints meanwhile, once for each run it may be about,
	// of whatever level, without what is sensitive. It is called from several
	// goroutines and must not block. engine.LogKeeper.Keep is one; nil = none.
	LogSink func(store.LogLine)

	// MaxProcesses is how many processes of all agents together run at once. An
	// agent without a process waits until another one's ends; its calls are held.
	// 0 = DefaultMaxProcesses.
	MaxProcesses int

	// MaxMemory, MaxThreads and MaxFiles are what each process may take, with all that
	// it starts; see plugin.OpenOptions. 0 = the defaults of package plugin.
	MaxMemory  int64
	MaxThreads int
	MaxFiles   int

	PayloadLimit int           // bytes of an input or an output; 0 = plugin.DefaultPayloadLimit
	TempDir      string        // for private directories of processes; "" = os.TempDir
	StartTimeout time.Duration // until a process is ready; 0 = 15 s
	CloseGrace   time.Duration // for an orderly end of a process, before it is killed; 0 = 3 s

	// Unary makes every call on a stream of its own, as with agents that know no
	// other way: for comparisons. Otherwise calls travel in batches.
	Unary bool

	PingInterval time.Duration // between two signs of life; 0 = 15 s
	// PingTimeout is how long one of them may take. A process that gives none
	// in that time is slow: it gets no more calls and is replaced, and ends when
	// its calls have. Four missing in a row kill it. 0 = 10 s.
	PingTimeout time.Duration
	// SlowAfter is the number of calls in a row after which a process that does not
	// answer in time is replaced, while another process of the agent answers. 0 = 5,
	// negative = never.
	SlowAfter int
	// IdleAfter is how long an agent must have had no call for its processes to
	// be ended; the next call starts them again. 0 = 5 min, negative = never.
	IdleAfter time.Duration

	// MinBackoff and MaxBackoff bound the pause before a process is started
	// again that did not start or did not live long. 0 = 200 ms and 30 s.
	MinBackoff, MaxBackoff time.Duration
	// Stable is how long a process must have lived to be started again at
	// once; 0 = 10 s.
	Stable time.Duration
	// RetrySecret is the pause before a secret that could not be resolved is
	// tried again; 0 = 10 s.
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

// protocol is the newest version of the protocol to agree on; 0 = any.
func (o Options) protocol() int {
	if o.Unary {
		return plugin.ProtocolUnary
	}
	return 0
}

// backoff is the pause before the next start after n short lives in a row.
func (o Options) backoff(n int) time.Duration {
	d := o.MinBackoff
	for ; n > 1 && d < o.MaxBackoff; n-- {
		d *= 2
	}
	return min(d, o.MaxBackoff)
}
