package telemetry

import (
	"context"
	"net/http"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/collectors"
	"github.com/prometheus/client_golang/prometheus/promhttp"

	"github.com/saga-engine/engine/engine"
	"github.com/saga-engine/engine/engine/machine"
	"github.com/saga-engine/engine/engine/machine/status"
	"github.com/saga-engine/engine/engine/store"
	"github.com/saga-engine/engine/engine/story"
)

// Meters count the events of an engine. They are safe for concurrent use and never block.
type Meters struct {
	registry *prometheus.Registry

	lag      prometheus.Histogram
	scan     prometheus.Histogram
	passes   *prometheus.CounterVec
	taken    prometheus.Counter
	fenced   prometheus.Counter
	late     prometheus.Counter
	accepted prometheus.Counter
	parked   prometheus.Counter
	attempts *prometheus.CounterVec
	finished *prometheus.CounterVec
	pushed   *prometheus.CounterVec
	removed  prometheus.Counter
	dropped  prometheus.Counter
}

var (
	_ engine.Observer          = (*Meters)(nil)
	_ engine.RetentionObserver = (*Meters)(nil)
	_ engine.FactChooser       = (*Meters)(nil)
)

// New returns meters whose counts are zero. The function `now` returns the present values to
// publish. The meters call it at each scrape. If `now` is nil, they publish only the counts.
func New(now func(ctx context.Context) Snapshot) *Meters {
	counter := func(name, help string) prometheus.Counter {
		return prometheus.NewCounter(prometheus.CounterOpts{Name: "engine_" + name, Help: help})
	}
	counters := func(name, label, help string) *prometheus.CounterVec {
		return prometheus.NewCounterVec(prometheus.CounterOpts{Name: "engine_" + name, Help: help}, []string{label})
	}
	seconds := func(name, help string, from float64, n int) prometheus.Histogram {
		return prometheus.NewHistogram(prometheus.HistogramOpts{
			Name: "engine_" + name, Help: help, Buckets: prometheus.ExponentialBuckets(from, 2, n),
		})
	}
	m := &Meters{
		registry: prometheus.NewRegistry(),
		lag:      seconds("supervisor_detection_lag_seconds", "Delay of the most overdue run that a scan of the Supervisor found.", 0.001, 18),
		scan:     seconds("supervisor_scan_seconds", "Duration of a scan of the Supervisor, including the delivery of its events.", 0.0005, 16),
		passes:   counters("supervisor_passes_total", "scope", "Scans of the Supervisor: of this engine's runs only, or also of the runs of other engines."),
		taken:    counter("runs_taken_over_total", "Runs taken over from engines that are gone, and claimed runs without an owner."),
		fenced:   counter("fenced_total", "How often this engine lost its lease and joined again. If it is above zero, find out why."),
		late:     counter("late_replies_total", "Answers of agents that came too late to count."),
		accepted: counter("runs_accepted_total", "Runs accepted by this engine."),
		parked:   counter("runs_parked_total", "How often a run of this engine began to need a person."),
		attempts: counters("attempts_finished_total", "status", "Attempts that ended on this engine."),
		finished: counters("runs_finished_total", "status", "Runs that ended on this engine."),
		pushed:   counters("alerts_pushed_total", "result", "Alerts sent to the receiver that --on-alert names."),
		removed:  counter("runs_removed_total", "Runs removed because their retention has ended."),
		dropped:  counter("partitions_dropped_total", "Partitions of the journal dropped after all their runs were removed."),
	}
	m.registry.MustRegister(
		m.lag, m.scan, m.passes, m.taken, m.fenced, m.late, m.accepted, m.parked, m.attempts, m.finished, m.pushed, m.removed, m.dropped,
		collectors.NewGoCollector(), collectors.NewProcessCollector(collectors.ProcessCollectorOpts{}),
	)
	for _, scope := range []string{"own", "all"} {
		// Make the counter of this label now, so that the metric is 0, and not missing, before the
		// first scan.
		m.passes.WithLabelValues(scope)
	}
	if now != nil {
		m.registry.MustRegister(&present{now: now})
	}
	return m
}

// Handler returns an HTTP handler that serves the metrics in the text format of Prometheus.
func (m *Meters) Handler() http.Handler {
	return promhttp.HandlerFor(m.registry, promhttp.HandlerOpts{})
}

// FactKinds returns the kinds of facts that the method Facts counts.
func (m *Meters) FactKinds() story.FactKinds {
	return story.NewFactKinds(story.FactRunCreated, story.FactRunParked, story.FactAttemptFinished, story.FactRunFinished)
}

// Facts counts accepted, parked and finished runs, and finished attempts.
func (m *Meters) Facts(_ status.RunID, _ int, facts []story.Fact) {
	for i := range facts {
		switch f := &facts[i]; f.Kind {
		case story.FactRunCreated:
			m.accepted.Inc()
		case story.FactRunParked:
			m.parked.Inc()
		case story.FactAttemptFinished:
			m.attempts.WithLabelValues(f.Status).Inc()
		case story.FactRunFinished:
			m.finished.WithLabelValues(f.Status).Inc()
		}
	}
}

// LateReply counts a late reply (S28).
func (m *Meters) LateReply(status.RunID, machine.AttemptID) { m.late.Inc() }

// Pass counts a scan of the Supervisor, and records its duration and lag (S47).
func (m *Meters) Pass(p engine.PassStats) {
	scope := "own"
	if p.Foreign {
		scope = "all"
	}
	m.passes.WithLabelValues(scope).Inc()
	m.scan.Observe(p.Took.Seconds())
	m.taken.Add(float64(p.Taken))
	if p.Lag > 0 {
		m.lag.Observe(p.Lag.Seconds())
	}
}

// Retained counts runs and partitions that retention removed.
func (m *Meters) Retained(s store.RetainStats) {
	m.removed.Add(float64(s.Runs))
	m.dropped.Add(float64(s.Partitions))
}

// Fenced counts how often this engine lost its lease or was declared dead.
func (m *Meters) Fenced() { m.fenced.Inc() }

// GivenUp counts an alert that its receiver refused permanently. The engine does not send it
// again.
func (m *Meters) GivenUp() { m.pushed.WithLabelValues("given_up").Inc() }

// Pushed counts a try to push an alert. The parameter `ok` is true if the receiver accepted the
// alert.
func (m *Meters) Pushed(ok bool) {
	result := "failed"
	if ok {
		result = "delivered"
	}
	m.pushed.WithLabelValues(result).Inc()
}

// scrapePatience is the longest time that a scrape waits for a Snapshot.
const scrapePatience = 2 * time.Second
