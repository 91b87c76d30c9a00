package chaos

import (
	"context"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"
	"testing/fstest"
	"time"

	"github.com/saga-engine/engine/dsl"
	"github.com/saga-engine/engine/engine"
	"github.com/saga-engine/engine/engine/agents"
	"github.com/saga-engine/engine/engine/crypt"
	"github.com/saga-engine/engine/engine/internal/chaos/ledger"
	"github.com/saga-engine/engine/engine/journal"
	"github.com/saga-engine/engine/engine/machine/status"
	"github.com/saga-engine/engine/engine/store"
	"github.com/saga-engine/engine/engine/store/postgres"
	"github.com/saga-engine/engine/engine/store/sqlite"
)

// An openStore is a store that a World has opened and must close.
type openStore interface {
	store.Store
	Close() error
}

// A World holds the engines, the store and the remote service of one test.
type World struct {
	T    testing.TB
	Seed uint64     // seed of Rng
	Rng  *rand.Rand // random numbers of the test
	DSN  string     // DSN with which engines open the store; a test may set the DSN of a proxy

	bins    *Binaries
	dir     string   // directory for files of the test
	far     *Process // the ledger
	URL     string   // URL of the ledger
	Ledger  ledger.Client
	store   store.Full   // the store, opened by the test itself to submit, read and check runs
	opened  openStore    // the same store as in the field `store`; the method `end` closes it
	sealer  crypt.Sealer // decrypts what engines have stored; nil = no key is known
	defs    *journal.Definitions
	catalog *agents.Catalog // finds the agents in bins.Dir

	mu       sync.Mutex // protects the fields below
	began    time.Time  // start of the test
	timeline []string   // lines that Note has added
	engines  []*Process // all engines that were started
	runs     []Run      // accepted runs
}

// A Run is one accepted run.
type Run struct {
	ID   status.RunID
	Name string // public id
	Flow Flow
}

// lease is the lease of engines in tests. In `make test` it is longer, because the machine may
// be slow. In `make chaos` it is short, so that more leases expire in a test.
var lease = map[bool]time.Duration{true: time.Second, false: 2 * time.Second}[full]

// NewWorld returns a World whose store is an empty PostgreSQL database. At the end of the test,
// all processes of the World are killed.
func NewWorld(t testing.TB, bins *Binaries, dsn string, seed uint64) *World {
	t.Helper()
	if _, _, err := postgres.Migrate(t.Context(), dsn); err != nil {
		t.Fatalf("migrate: %v", err)
	}
	store, err := postgres.Open(t.Context(), dsn, postgres.Options{})
	if err != nil {
		t.Fatalf("open: %v", err)
	}
	return newWorldOver(t, bins, store, dsn, t.TempDir(), seed)
}

// NewEmbeddedWorld returns a World whose store is a file of SQLite. Only one engine at a time
// can use this store.
func NewEmbeddedWorld(t testing.TB, bins *Binaries, seed uint64) *World {
	t.Helper()
	dir := t.TempDir()
	path := filepath.Join(dir, "state.db")
	first, err := sqlite.Open(t.Context(), path, sqlite.Options{}) // creates the file
	if err != nil {
		t.Fatalf("make: %v", err)
	}
	if err := first.Close(); err != nil {
		t.Fatalf("close: %v", err)
	}
	store, err := sqlite.Open(t.Context(), path, sqlite.Options{Beside: true})
	if err != nil {
		t.Fatalf("open: %v", err)
	}
	return newWorldOver(t, bins, store, "sqlite:"+path, dir, seed)
}

func newWorldOver(t testing.TB, bins *Binaries, opened openStore, dsn, dir string, seed uint64) *World {
	t.Helper()
	w := &World{T: t, Seed: seed, Rng: rand.New(rand.NewPCG(seed, 0xc4a05)), DSN: dsn, bins: bins, dir: dir, began: time.Now(), store: store.Complete(opened), opened: opened}
	w.defs = journal.NewDefinitions(w.store, nil)
	w.catalog = agents.NewCatalog(agents.CatalogOptions{Search: agents.SearchOptions{PluginDirs: []string{bins.Dir}}})
	var err error
	if w.far, err = start("ledger", bins.Ledger, nil, filepath.Join(w.dir, "ledger")); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(w.end)
	w.URL = strings.TrimSpace(w.await("the ledger's address", 10*time.Second, func() (string, bool) {
		out := w.far.Output()
		return out, strings.HasSuffix(out, "\n")
	}))
	w.Ledger = ledger.Client{URL: w.URL}
	return w
}

// learnKey reads the encryption key from the file next to the state file, if this file exists.
func (w *World) learnKey() {
	w.T.Helper()
	path := strings.TrimPrefix(w.DSN, "sqlite:") + ".key"
	if _, err := os.Stat(path); !w.Embedded() || err != nil {
		return
	}
	keys, err := crypt.LoadOrCreateKeyFile(path)
	if err != nil {
		w.T.Fatal(err)
	}
	if w.sealer, err = crypt.NewSealer(keys...); err != nil {
		w.T.Fatal(err)
	}
	w.defs = journal.NewDefinitions(w.store, w.sealer)
}

// Embedded reports whether the store is a file of SQLite.
func (w *World) Embedded() bool { return strings.HasPrefix(w.DSN, "sqlite:") }

// end kills all processes and closes the store. If the test failed, it logs the timeline and the
// output of the engines.
func (w *World) end() {
	for _, p := range w.all() {
		p.Kill()
	}
	w.far.Kill()
	if err := w.opened.Close(); err != nil {
		w.T.Logf("close the store: %v", err)
	}
	if !w.T.Failed() {
		return
	}
	w.T.Logf("seed %d, timeline:\n%s", w.Seed, strings.Join(w.Timeline(), "\n"))
	for _, p := range w.all() {
		out := p.Output()
		if len(out) > 6000 {
			out = out[:2000] + "\n…\n" + out[len(out)-4000:]
		}
		w.T.Logf("%s (pid %d) printed:\n%s", p.Name, p.Pid(), out)
	}
}

func (w *World) all() []*Process {
	w.mu.Lock()
	defer w.mu.Unlock()
	return append([]*Process(nil), w.engines...)
}

// Note adds a line to the timeline.
func (w *World) Note(format string, args ...any) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.timeline = append(w.timeline, fmt.Sprintf("%8.3fs %s", time.Since(w.began).Seconds(), fmt.Sprintf(format, args...)))
}

// Timeline returns the lines that Note has added, in order.
func (w *World) Timeline() []string {
	w.mu.Lock()
	defer w.mu.Unlock()
	return append([]string(nil), w.timeline...)
}

// StartEngine starts `engine serve`. The parameter `points` lists the faults (ENGINE_FAILPOINTS).
func (w *World) StartEngine(name, points string, args ...string) *Process {
	w.T.Helper()
	return w.StartEngineOn(w.DSN, name, points, args...)
}

// StartEngineOn does the work of StartEngine, but the engine opens the store with the given DSN.
func (w *World) StartEngineOn(dsn, name, points string, args ...string) *Process {
	w.T.Helper()
	env := []string{
		"ENGINE_DSN=" + dsn, "ENGINE_PLUGIN_DIR=" + w.bins.Dir, "HOME=" + w.dir, "ENGINE_ENCRYPTION_KEY=",
		"ENGINE_FAILPOINTS=" + points, "ENGINE_FAILPOINTS_LOG=" + filepath.Join(w.dir, name+".points"),
	}
	args = append([]string{"serve", "--lease", lease.String(), "--log", "info", "--retention", "720h", "--address", name}, args...)
	p, err := start(name, w.bins.Engine, env, args...)
	if err != nil {
		w.T.Fatal(err)
	}
	w.mu.Lock()
	w.engines = append(w.engines, p)
	w.mu.Unlock()
	w.Note("%s starts (pid %d) %s", name, p.Pid(), points)
	return p
}

// Command runs `engine` with the given arguments and the store of the World. It returns the
// printed text and the exit code. The exit code is -1 if a signal ended the command.
func (w *World) Command(args ...string) (string, int) {
	w.T.Helper()
	return w.CommandAt("", args...)
}

// CommandAt does the work of Command. The parameter `points` lists the faults (ENGINE_FAILPOINTS).
func (w *World) CommandAt(points string, args ...string) (string, int) {
	w.T.Helper()
	env := []string{"ENGINE_DSN=" + w.DSN, "ENGINE_PLUGIN_DIR=" + w.bins.Dir, "HOME=" + w.dir, "ENGINE_ENCRYPTION_KEY=", "ENGINE_FAILPOINTS=" + points}
	p, err := start("engine "+args[0], w.bins.Engine, env, args...)
	if err != nil {
		w.T.Fatal(err)
	}
	code, err := p.Wait(2 * time.Minute)
	if err != nil {
		p.Kill()
		w.T.Fatalf("engine %v: %v\n%s", args, err, p.Output())
	}
	w.Note("engine %s: exit %d", strings.Join(args, " "), code)
	return p.Output(), code
}

// Define returns the definition for the source text of a module.
func (w *World) Define(source string) *dsl.Definition {
	w.T.Helper()
	m, diags := dsl.Parse(fstest.MapFS{"w.hcl": {Data: []byte(source)}}, dsl.ParseOptions{})
	if diags.HasErrors() {
		w.T.Fatalf("parse: %v\n%s", diags.Err(), source)
	}
	pins := map[string]dsl.AgentBinary{}
	for _, use := range m.Agents() {
		b, err := w.catalog.Resolve(w.T.Context(), agents.Use{Name: use.Plugin, Constraint: use.Constraint}, nil)
		if err != nil {
			w.T.Fatalf("agent %s: %v", use.Plugin, err)
		}
		pins[use.Name] = b.Pin()
	}
	def, diags := dsl.Link(m, pins)
	if diags.HasErrors() {
		w.T.Fatalf("link: %v\n%s", diags.Err(), source)
	}
	return def
}

// Submit submits and returns n runs of a Flow. The runs have no owner: any engine may claim them.
func (w *World) Submit(f Flow, n int) []Run {
	w.T.Helper()
	def := w.Define(f.Source)
	vars, diags := def.Workflow("w").Bind(nil)
	if diags.HasErrors() {
		w.T.Fatalf("bind: %v", diags.Err())
	}
	var runs []Run
	for i := range n {
		reply := ""
		if i%2 == 0 && !w.Embedded() {
			reply = "table:judge" // Judge checks the replies (I12)
		}
		sub, err := w.Enqueue(engine.Submission{Definition: def, Workflow: "w", Vars: vars, By: "chaos", ReplyTo: reply})
		if err != nil {
			w.T.Fatalf("submit: %v", err)
		}
		runs = append(runs, Run{ID: sub.Run, Name: sub.Name, Flow: f})
	}
	w.mu.Lock()
	w.runs = append(w.runs, runs...)
	w.mu.Unlock()
	w.Note("%d runs accepted, from %s", n, runs[0].Name)
	return runs
}

// Enqueue submits one run without an owner.
func (w *World) Enqueue(s engine.Submission) (store.Submitted, error) {
	ctx, cancel := context.WithTimeout(w.T.Context(), 30*time.Second)
	defer cancel()
	return engine.Enqueue(ctx, engine.Config{Store: w.store, Sealer: w.sealer}, s)
}

// adopt adds a run to the runs that Judge checks. It is for runs that Submit has not submitted.
func (w *World) adopt(r Run) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.runs = append(w.runs, r)
}

// write writes a file in the directory of the World, and returns the path of the file.
func (w *World) write(name, text string) string {
	w.T.Helper()
	path := filepath.Join(w.dir, name)
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		w.T.Fatal(err)
	}
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		w.T.Fatal(err)
	}
	return path
}

// Runs returns the accepted runs.
func (w *World) Runs() []Run {
	w.mu.Lock()
	defer w.mu.Unlock()
	return append([]Run(nil), w.runs...)
}

// AwaitRest waits until all runs have ended or need a person. After patience(limit) the test fails.
func (w *World) AwaitRest(limit time.Duration) {
	w.T.Helper()
	var open []string
	deadline := time.Now().Add(patience(limit))
	// The runs that may still be open. A run leaves this list when it has ended or is parked: no
	// person acts, so the run cannot change any more.
	left := w.Runs()
	for pause := 20 * time.Millisecond; ; pause = min(2*pause, 300*time.Millisecond) {
		open = open[:0]
		var next []Run
		for part := range slices.Chunk(left, 200) {
			heads, err := w.heads(part)
			for _, r := range part {
				head, there := heads[r.ID]
				if there && (head.State.Final() || head.State.NeedsHuman()) {
					continue
				}
				next = append(next, r)
				open = append(open, fmt.Sprintf("%s %v (there: %t, err: %v)", r.Name, head.State, there, err))
			}
		}
		left = next
		if len(open) == 0 {
			w.Note("all runs are at rest")
			return
		}
		if time.Now().After(deadline) {
			break
		}
		time.Sleep(pause) // pause between two reads of the store
	}
	w.T.Fatalf("stuck after %s (I8): %s", patience(limit), strings.Join(open, ", "))
}

// heads returns the row (store.Head) of each given run, by run id. It returns no row for a run that
// the store does not have.
func (w *World) heads(runs []Run) (map[status.RunID]store.Head, error) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(w.T.Context()), 5*time.Second)
	defer cancel()
	ids := make([]status.RunID, len(runs))
	for i, r := range runs {
		ids[i] = r.ID
	}
	found, err := w.store.Load(ctx, ids...)
	heads := make(map[status.RunID]store.Head, len(found))
	for _, l := range found {
		heads[l.Head.Run] = l.Head
	}
	return heads, err
}

func (w *World) head(run status.RunID) (store.Head, error) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(w.T.Context()), 5*time.Second)
	defer cancel()
	head, _, err := store.LoadRun(ctx, w.store, run)
	return head, err
}

// await does the work of Await. It also returns the text that fn returned in its last call.
func (w *World) await(what string, limit time.Duration, fn func() (string, bool)) string {
	w.T.Helper()
	deadline := time.Now().Add(patience(limit))
	for {
		if s, ok := fn(); ok {
			return s
		}
		if time.Now().After(deadline) {
			w.T.Fatalf("waited %s for %s", patience(limit), what)
		}
		time.Sleep(5 * time.Millisecond) // pause between two calls
	}
}

// Await calls fn until fn returns true. If this takes longer than patience(limit), the test fails
// with a message. In this message, the parameter `what` says for what the test has waited.
func (w *World) Await(what string, limit time.Duration, fn func() bool) {
	w.T.Helper()
	w.await(what, limit, func() (string, bool) { return "", fn() })
}

// Freeze stops a process with SIGSTOP. After the time d it lets the process continue, and returns.
func (w *World) Freeze(p *Process, d time.Duration) {
	w.Note("%s freezes for %s", p.Name, d)
	if err := p.Signal(syscall.SIGSTOP); err != nil {
		w.Note("%s: %v", p.Name, err)
		return
	}
	time.Sleep(d) // the time for which the process is frozen
	if err := p.Signal(syscall.SIGCONT); err != nil {
		w.Note("%s: %v", p.Name, err)
		return
	}
	w.Note("%s thaws", p.Name)
}
