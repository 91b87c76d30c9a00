package main

import (
	"bytes"
	"context"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/saga-engine/engine/dsl"
	"github.com/saga-engine/engine/engine"
	"github.com/saga-engine/engine/engine/machine"
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

func TestTable(t *testing.T) {
	var out bytes.Buffer
	tab := newTable(&out)
	tab.head()
	tab.row("sqlite", 64, result{runs: 200, took: 2 * time.Second, latencies: []time.Duration{1500 * time.Microsecond}, commits: 500, rows: 1200}, 1000, 1)
	want := []string{"sqlite", "64", "100", "500", "1.5ms", "1.5ms", "1.5ms", "0.50", "2.4", "1000", "(1)", "0.50"}
	if got := strings.Fields(strings.Split(out.String(), "\n")[1]); strings.Join(got, " ") != strings.Join(want, " ") {
		t.Errorf("row = %v, want %v", got, want)
	}
	if tab.err != nil {
		t.Error(tab.err)
	}
}

// The workflow has as many steps as the figures assume.
func TestWorkflow(t *testing.T) {
	m, diags := dsl.Parse(source, dsl.ParseOptions{})
	if err := diags.Err(); err != nil {
		t.Fatal(err)
	}
	src, err := source.ReadFile("workflow.hcl")
	if err != nil {
		t.Fatal(err)
	}
	if n := bytes.Count(src, []byte("\n  step ")); n != steps || len(m.Workflows()) != 1 {
		t.Errorf("%d steps in %v, want %d", n, m.Workflows(), steps)
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
	wf := linked(t)
	f := &flock{wf: wf, flow: wf.def.Workflow("five"), id: 1, owner: 7, now: time.Now(), output: dsl.NewValue([]byte(`{"value":"x"}`), nil, nil)}
	rows, err := f.run(firstID)
	if err != nil {
		t.Fatal(err)
	}
	state := machine.NewState()
	for seq, row := range rows {
		if err := row.Validate(); err != nil {
			t.Errorf("row %d: %v", seq, err)
		}
		records, err := engine.DecodeRow(nil, row.Run, engine.Row{Seq: row.Seq, At: row.At, Data: row.Data})
		if err != nil {
			t.Fatal(err)
		}
		for _, rec := range records {
			state.Apply(rec)
		}
	}
	if len(rows) != done+1 || state.Status() != machine.RunRunning {
		t.Errorf("%d rows make a run that is %s, want %d and a running one", len(rows), state.Status(), done+1)
	}
}

// linked is the workflow against an agent of the mock's shape.
func linked(t *testing.T) *workflow {
	t.Helper()
	type value struct {
		Value any `agent:"value,optional"`
	}
	a := sdk.New("mock", "0.1.0")
	sdk.Action(a, "call", func(_ context.Context, _ *sdk.Call, in value) (value, error) { return in, nil }, sdk.Idempotent())
	schema, err := a.Schema()
	if err != nil {
		t.Fatal(err)
	}
	m, diags := dsl.Parse(source, dsl.ParseOptions{})
	if err := diags.Err(); err != nil {
		t.Fatal(err)
	}
	binaries := map[string]dsl.AgentBinary{}
	for _, use := range m.Agents() {
		binaries[use.Name] = dsl.AgentBinary{Schema: schema, Version: schema.Version, Checksum: "00"}
	}
	def, diags := dsl.Link(m, binaries)
	if err := diags.Err(); err != nil {
		t.Fatal(err)
	}
	vars, diags := def.Workflow("five").Bind([]dsl.Assignment{{Name: "value", Text: "x", Source: "test"}})
	if err := diags.Err(); err != nil {
		t.Fatal(err)
	}
	return &workflow{def: def, vars: vars}
}
