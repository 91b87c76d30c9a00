package main

import (
	"bytes"
	"context"
	"strings"
	"testing"
	"time"

	"github.com/saga-engine/engine/dsl"
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
