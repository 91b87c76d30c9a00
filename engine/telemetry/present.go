package telemetry

import (
	"context"

	"github.com/prometheus/client_golang/prometheus"
)

// A Snapshot holds the measures of an engine at one moment.
type Snapshot struct {
	RunsOwned int
	// Number of calls that were sent, or that will be sent soon, and have no answer yet.
	InFlight     int
	LeaseSeconds float64 // seconds until the lease expires; 0 = the lease has expired
	Queued       int     // number of transitions that wait until an earlier commit ends
	// Longest time for which a run without an owner has been due, in seconds; 0 = there is no such
	// run.
	QueueAge float64
	Behind   float64 // seconds for which the oldest transition has waited for its commit
	// Duration of the slowest decision so far, in seconds; a decision in progress counts as well.
	Slowest     float64
	Quarantined int // number of runs that this engine has quarantined
	// Number of alerts that were not pushed yet; negative = not known, or this engine
	// pushes no alerts.
	Undelivered int
	// Number of submissions of other programs that engines refused; negative = not known, or the
	// state has no such submissions.
	Refused int
	// Starts says for how many seconds the oldest start of each kind, such as "submission", has
	// waited for an engine; 0 = none waits. nil = not known.
	Starts map[string]float64
	// Replies that wait, by the kind of their sink; nil = not known. A kind without waiting replies
	// has an entry, too.
	Replies map[string]ReplyLag
	Agents  []AgentSnapshot
}

// A ReplyLag says how many replies wait for the sinks of one kind.
type ReplyLag struct {
	Waiting int
	Oldest  float64 // seconds for which the oldest of these replies has waited; 0 = none waits
}

// An AgentSnapshot describes one agent. An agent with several versions or configurations has
// several snapshots. The metrics show the sums of their fields Instances and InFlight, and the
// worst state of their circuits.
type AgentSnapshot struct {
	Agent     string
	Circuit   int // state of the circuit breaker: 0 closed, 1 half-open, 2 open
	Instances int // number of agent processes that get calls
	InFlight  int
}

// mostAgents is the largest number of agents that have their own label. The values of all other
// agents are added, and shown with the label otherAgents. This limits the number of labels.
const (
	mostAgents  = 100
	otherAgents = "other"
)

var (
	descOwned       = prometheus.NewDesc("engine_runs_owned", "Runs that this engine works on.", nil, nil)
	descInFlight    = prometheus.NewDesc("engine_calls_in_flight", "Calls of agents in flight.", nil, nil)
	descLease       = prometheus.NewDesc("engine_lease_seconds", "Time until the lease expires; 0 = it has expired.", nil, nil)
	descQueued      = prometheus.NewDesc("engine_commits_waiting", "Transitions that wait until an earlier commit ends; their number is limited.", nil, nil)
	descBehind      = prometheus.NewDesc("engine_commit_oldest_seconds", "For how long the oldest transition has waited for its commit.", nil, nil)
	descQueueAge    = prometheus.NewDesc("engine_queue_oldest_seconds", "For how long the first run that no engine has taken has been due.", nil, nil)
	descSlowest     = prometheus.NewDesc("engine_slowest_decision_seconds", "Duration of the slowest decision since the engine started; a decision in progress counts.", nil, nil)
	descQuarantined = prometheus.NewDesc("engine_runs_quarantined", "Runs that this engine cannot work on, for example because an agent is missing.", nil, nil)
	descUndelivered = prometheus.NewDesc("engine_alerts_undelivered", "Alerts that wait to be pushed, 1000 at most.", nil, nil)
	descRefused     = prometheus.NewDesc("engine_submissions_refused", "Submissions of other programs that engines refused, 10000 at most.", nil, nil)
	descOldestStart = prometheus.NewDesc("engine_starts_oldest_seconds", "For how long the oldest submission or event has waited for an engine.", []string{"kind"}, nil)
	descWaiting     = prometheus.NewDesc("engine_replies_waiting", "Replies of runs that wait for their sink, by the kind of the sink.", []string{"kind"}, nil)
	descOldestReply = prometheus.NewDesc("engine_replies_oldest_seconds", "For how long the oldest reply of a run has waited for its sink, by the kind of the sink.", []string{"kind"}, nil)
	descCircuit     = prometheus.NewDesc("engine_agent_circuit_state", "Circuit breaker of an agent: 0 closed, 1 half-open, 2 open.", []string{"agent"}, nil)
	descInstances   = prometheus.NewDesc("engine_agent_instances", "Processes of an agent that take calls.", []string{"agent"}, nil)
	descAgentCalls  = prometheus.NewDesc("engine_agent_calls_in_flight", "Calls of an agent in flight.", []string{"agent"}, nil)
)

// present collects a Snapshot at each scrape.
type present struct {
	now func(ctx context.Context) Snapshot
}

// Describe sends the descriptions of the metrics that Collect sends.
func (p *present) Describe(ch chan<- *prometheus.Desc) {
	for _, d := range []*prometheus.Desc{descOwned, descInFlight, descLease, descQueued, descBehind, descQueueAge, descSlowest, descQuarantined, descUndelivered, descRefused, descOldestStart, descWaiting, descOldestReply, descCircuit, descInstances, descAgentCalls} {
		ch <- d
	}
}

// Collect sends the present values.
func (p *present) Collect(ch chan<- prometheus.Metric) {
	ctx, cancel := context.WithTimeout(context.Background(), scrapePatience)
	defer cancel()
	s := p.now(ctx)
	gauge := func(d *prometheus.Desc, v float64, labels ...string) {
		ch <- prometheus.MustNewConstMetric(d, prometheus.GaugeValue, v, labels...)
	}
	gauge(descOwned, float64(s.RunsOwned))
	gauge(descInFlight, float64(s.InFlight))
	gauge(descLease, s.LeaseSeconds)
	gauge(descQueued, float64(s.Queued))
	gauge(descBehind, s.Behind)
	gauge(descQueueAge, s.QueueAge)
	gauge(descSlowest, s.Slowest)
	gauge(descQuarantined, float64(s.Quarantined))
	if s.Undelivered >= 0 {
		gauge(descUndelivered, float64(s.Undelivered))
	}
	if s.Refused >= 0 {
		gauge(descRefused, float64(s.Refused))
	}
	for kind, age := range s.Starts {
		gauge(descOldestStart, age, kind)
	}
	for kind, l := range s.Replies {
		gauge(descWaiting, float64(l.Waiting), kind)
		gauge(descOldestReply, l.Oldest, kind)
	}
	for _, a := range byAgent(s.Agents) {
		gauge(descCircuit, float64(a.Circuit), a.Agent)
		gauge(descInstances, float64(a.Instances), a.Agent)
		gauge(descAgentCalls, float64(a.InFlight), a.Agent)
	}
}

// byAgent merges all snapshots that have the same agent name. The result has the order of the first
// snapshot of each agent. It contains at most mostAgents agents. If there are more agents, byAgent
// merges the snapshots of all further agents into one additional snapshot with the name
// otherAgents.
func byAgent(all []AgentSnapshot) []AgentSnapshot {
	at := map[string]int{}
	var out []AgentSnapshot
	for _, a := range all {
		if _, known := at[a.Agent]; !known && len(out) >= mostAgents {
			a.Agent = otherAgents
		}
		i, known := at[a.Agent]
		if !known {
			at[a.Agent] = len(out)
			out = append(out, a)
			continue
		}
		out[i].Circuit = max(out[i].Circuit, a.Circuit)
		out[i].Instances += a.Instances
		out[i].InFlight += a.InFlight
	}
	return out
}
