package main

import (
	"bytes"
	"context"
	"database/sql"
	"encoding/json"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/saga-engine/engine/cmd/bench/internal/gauge"
	"github.com/saga-engine/engine/dsl"
	"github.com/saga-engine/engine/engine/journal"
	"github.com/saga-engine/engine/engine/machine"
	"github.com/saga-engine/engine/engine/machine/status"
	"github.com/saga-engine/engine/engine/store"
	"github.com/saga-engine/engine/sdk"
)

func TestQuantile(t *testing.T) {
	var r result
	for i := range 100 {
		r.latencies = append(r.latencies, time.Duration(i+1))
	}
	for q, want := range map[float64]time.Duration{0: 1, 0.5: 51, 0.95: 96, 0.99: 100, 1: 100} {
		if got := r.quantile(q); got != want {
			t.Errorf("quantile(%v) = %d, want %d", q, got, want)
		}
	}
	if got := (result{}).quantile(0.5); got != 0 {
		t.Errorf("quantile of nothing = %d, want 0", got)
	}
}

// The workflows that are measured have as many steps as the figures assume.
func TestWorkflow(t *testing.T) {
	w := linked(t)
	for _, name := range []string{"five", "undone"} {
		if n := len(w.def.Workflow(name).Steps); n != steps {
			t.Errorf("%s has %d steps, want %d", name, n, steps)
		}
	}
}

func TestNeedsAServer(t *testing.T) {
	err := run(context.Background(), nil, func(string) string { return "" }, &bytes.Buffer{}, &bytes.Buffer{})
	if err == nil || !strings.Contains(err.Error(), "make bench") {
		t.Errorf("run without a server: %v, want a hint", err)
	}
}

func TestRecoveryTables(t *testing.T) {
	var out bytes.Buffer
	tab := newTable(&out)
	one := scan{tick: time.Millisecond, overdue: 200 * time.Microsecond, orphans: 300 * time.Microsecond}
	two := scan{tick: time.Millisecond, overdue: 100 * time.Microsecond, orphans: 600 * time.Microsecond}
	tab.scans([2]scan{one, two}, 10_000_000)
	tab.takeovers([]takeover{
		{psql: 100 * time.Millisecond, took: 200 * time.Millisecond, psqlCPU: 100 * time.Millisecond, tookCPU: 400 * time.Millisecond},
	}, 1000, 10_000_000)
	var got []string
	for _, line := range strings.Split(out.String(), "\n") {
		got = append(got, strings.Join(strings.Fields(line), " "))
	}
	for _, want := range []string{
		"0 finished runs 1000µs 200µs 300µs 1500µs 1.00",
		"10,000,000 finished runs 1000µs 100µs 600µs 1700µs 1.13",
		"ratio of each 1.00 0.50 2.00",
		"median 100.0ms 200.0ms 5000 2.00 100.0ms 400.0ms 4.00",
	} {
		if !slices.Contains(got, want) {
			t.Errorf("there is no row %q in\n%s", want, out.String())
		}
	}
	if tab.err != nil {
		t.Error(tab.err)
	}
}

// A proxy counts what executes something, and passes everything on.
func TestProxyCounts(t *testing.T) {
	d := testDatabase(t, "proxy")
	p, err := gauge.Listen(d.dsn.Host)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { closed(t, p.Close) })
	dsn := *d.dsn
	dsn.Host = p.Address()
	db, err := sql.Open("postgres", dsn.String())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { closed(t, db.Close) })
	conn, err := db.Conn(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	before := p.Counts()
	for i := range 10 {
		var got int
		if err := conn.QueryRowContext(t.Context(), `SELECT $1::int4 + 1`, i).Scan(&got); err != nil || got != i+1 {
			t.Fatalf("%d + 1 = %d, err = %v", i, got, err)
		}
	}
	if _, err := conn.ExecContext(t.Context(), `SELECT 1`); err != nil {
		t.Fatal(err)
	}
	if _, err := conn.ExecContext(t.Context(), `;`); err != nil {
		t.Fatal(err)
	}
	after := p.Counts()
	if n, pings := after[0]-before[0], after[1]-before[1]; n != 11 || pings != 1 {
		t.Errorf("%d statements and %d pings were counted, want 11 and 1", n, pings)
	}
}

func TestBook(t *testing.T) {
	b := &book{}
	for round, v := range []float64{10, 30, 20} {
		b.put(round, "a", "n", v)
		b.put(round, "b", "n", []float64{5, 10, 0}[round])
	}
	if v, ok := b.median("a", "n"); !ok || v != 20 {
		t.Errorf("median = %v, %v", v, ok)
	}
	if v, ok := b.ratio("a", "b", "n", "n"); !ok || v != 2.5 { // of 2 and 3: the third has nothing to compare with
		t.Errorf("ratio = %v, %v", v, ok)
	}
	if _, ok := b.median("a", "m"); ok {
		t.Error("there is a median of nothing")
	}
	path := filepath.Join(t.TempDir(), "raw.json")
	if err := b.write(path); err != nil {
		t.Fatal(err)
	}
	data, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	var raw struct{ Figures []figure }
	if err := json.Unmarshal(data, &raw); err != nil || !slices.Equal(raw.Figures, b.figures) {
		t.Errorf("%+v, err = %v", raw.Figures, err)
	}
}

func TestGoals(t *testing.T) {
	atLeast := goal{must: 2, aim: 4, least: true, digits: 2}
	atMost := goal{must: 0.55, aim: 0.35, digits: 2}
	for _, c := range []struct {
		name string
		g    goal
		v    float64
		want string
	}{
		{"below both", atLeast, 1.99, "NO"}, {"rounded up", atLeast, 1.996, "yes"}, {"between", atLeast, 3, "yes"}, {"the aim", atLeast, 4, "aim"},
		{"above both", atMost, 0.56, "NO"}, {"rounded down", atMost, 0.554, "yes"}, {"within the aim", atMost, 0.2, "aim"},
	} {
		if got := c.g.holds(c.v); got != c.want {
			t.Errorf("%s: %q, want %q", c.name, got, c.want)
		}
	}
	var out bytes.Buffer
	tab := newTable(&out)
	b := &book{}
	b.put(0, "postgres/256", "steps/s", 50_000)
	b.put(0, "pgbench/64", "tps", 20_000)
	tab.goals(b)
	lines := strings.Split(strings.TrimSpace(out.String()), "\n")
	if len(lines) != 1+len(goals()) {
		t.Errorf("%d lines for %d goals", len(lines), len(goals()))
	}
	if got, want := strings.Join(strings.Fields(lines[1]), " "), "end-to-end steps/s, 256 in flight pgbench, 64 clients ≥ 2 ≥ 4 2.50 yes"; got != want {
		t.Errorf("the first goal is %q, want %q", got, want)
	}
	if !strings.HasSuffix(lines[2], "-      -") {
		t.Errorf("what was not measured shows as %q", lines[2])
	}
}

func TestParts(t *testing.T) {
	all, err := chosen("")
	if err != nil || len(all) != len(parts()) {
		t.Errorf("%d parts, err = %v", len(all), err)
	}
	some, err := chosen("idle,steps")
	if err != nil || len(some) != 2 || some[0].name != "steps" {
		t.Errorf("%+v, err = %v", some, err)
	}
	if _, err := chosen("steps,nothing"); err == nil {
		t.Error("an unknown part was accepted")
	}
}

func TestMedian(t *testing.T) {
	same := func(d time.Duration) time.Duration { return d }
	if got := median([]time.Duration{9, 1, 5}, same); got != 5 {
		t.Errorf("median = %d, want 5", got)
	}
	if got := median(nil, same); got != 0 {
		t.Errorf("median of nothing = %d, want 0", got)
	}
}

// The runs of the takeover have the journal that an engine writes: it folds to
// a run that waits for its fourth step.
func TestFlock(t *testing.T) {
	w := linked(t)
	f := &runMaker{work: w, flow: w.def.Workflow("five"), id: 1, owner: 7, now: time.Now(), output: dsl.NewValue([]byte(`{"value":"x"}`), nil, nil)}
	rows, err := f.run(firstID)
	if err != nil {
		t.Fatal(err)
	}
	state := machine.NewState()
	for seq, row := range rows {
		if err := row.Validate(); err != nil {
			t.Errorf("row %d: %v", seq, err)
		}
		records, err := journal.DecodeRow(nil, row.Run, store.Row{Seq: row.Seq, At: row.At, Data: row.Data})
		if err != nil {
			t.Fatal(err)
		}
		for _, rec := range records {
			state.Apply(rec)
		}
	}
	if len(rows) != done+1 || state.Status() != status.RunRunning {
		t.Errorf("%d rows make a run that is %s, want %d and a running one", len(rows), state.Status(), done+1)
	}
}

// Large workflows are what their names say, and small ones are like them.
func TestShapes(t *testing.T) {
	const large = 2_000
	w := linkedTo(t, shapesSource(large), "wide")
	for _, s := range shapes() {
		for name, calls := range map[string]int{s.row: large, "small-" + s.row: s.calls} {
			wf := w.def.Workflow(name)
			if wf == nil {
				t.Fatalf("there is no workflow %s", name)
			}
			want := 1
			if s.row == "long" || name == "small-family" {
				want = calls
			}
			if len(wf.Steps) != want {
				t.Errorf("%s has %d steps, want %d", name, len(wf.Steps), want)
			}
		}
	}
}

// linked is the workflows against an agent of the mock's shape.
func linked(t testing.TB) *work {
	t.Helper()
	return linkedTo(t, source, "five")
}

func linkedTo(t testing.TB, fsys fs.FS, one string) *work {
	t.Helper()
	type value struct {
		Value any `agent:"value,optional"`
	}
	type script struct {
		value
		Latency time.Duration `agent:"latency,optional"`
		Fail    any           `agent:"fail,optional"`
	}
	a := sdk.New("mock", "0.1.0")
	give := func(_ context.Context, _ *sdk.Call, in value) (value, error) { return in, nil }
	play := func(_ context.Context, _ *sdk.Call, in script) (value, error) { return in.value, nil }
	sdk.Action(a, "echo", give, sdk.Idempotent(), sdk.ReadOnly())
	sdk.Action(a, "call", play, sdk.Idempotent(), sdk.AnyErrors())
	sdk.Action(a, "call_once", play, sdk.AnyErrors())
	sdk.Action(a, "do", play, sdk.Idempotent(), sdk.CompensatedBy("undo"), sdk.AnyErrors())
	sdk.Action(a, "undo", func(context.Context, *sdk.Call, sdk.None) (sdk.None, error) { return sdk.None{}, nil }, sdk.Idempotent(), sdk.ByKey())
	schema, err := a.Schema()
	if err != nil {
		t.Fatal(err)
	}
	w, err := bind(fsys, one, func(dsl.AgentUse) (dsl.AgentBinary, error) {
		return dsl.AgentBinary{Schema: schema, Version: schema.Version, Checksum: "00"}, nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return w
}
