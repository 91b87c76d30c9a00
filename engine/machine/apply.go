package machine

import (
	"slices"

	"github.com/saga-engine/engine/dsl"
)

// Apply folds the next record of the run into the state, in place. It needs
// neither the definition nor expressions: the record says what the fields
// become. Records are applied in the order in which they were committed, each
// once.
func (s *State) Apply(r Record) {
	if !r.Empty() {
		s.apply(r, s.afterAll(r))
	}
}

// ApplyCounted is Apply, and returns how many Facts the record has. It costs
// less than asking for them.
func (s *State) ApplyCounted(wf *dsl.Workflow, r Record) int {
	if r.Empty() {
		return len(r.Facts(wf, s))
	}
	after := s.afterAll(r)
	t := &teller{wf: wf, r: r, s: s, counts: true}
	t.tell(after)
	s.apply(r, after)
	return t.count
}

// afterAll returns the record's nodes as they are after it. References mean the
// state before the record, so everything is computed before anything is
// installed.
func (s *State) afterAll(r Record) []*node {
	after := make([]*node, len(r.nodes))
	for k := range r.nodes {
		after[k] = s.after(&r.nodes[k])
	}
	return after
}

// apply installs what a record amounts to.
func (s *State) apply(r Record, after []*node) {
	vars := s.run.vars
	if r.run != nil {
		overwrite(runFields, r.run.mask, &s.run, &r.run.to)
		s.run.outputs = s.resolved(s.run.outputs)
	}
	s.run.records++
	s.run.last = r.at
	if s.run.vars != vars {
		s.remember(s.run.vars, origin{kind: originVars})
	}
	for len(s.nodes) < min(s.run.steps, maxNodes) {
		s.nodes = append(s.nodes, newNode(len(s.nodes)))
	}
	for len(s.queues) < len(s.run.holds) {
		s.queues = append(s.queues, lazyHeap{})
	}
	for k := range r.nodes {
		s.install(r.nodes[k].node, after[k])
	}
	s.prune()
	switch {
	case s.cache == nil || !s.cache.pending:
	case s.cache == r.cache:
		s.cache.pending = false
	default:
		s.cache = nil // made for a record that did not land
	}
}

// resolved returns outputs with their references filled in.
func (s *State) resolved(outputs []output) []output {
	outputs = slices.Clone(outputs)
	for k := range outputs {
		s.resolve(&outputs[k].value, "")
	}
	return outputs
}

// maxNodes bounds what a damaged record can make the state allocate.
const maxNodes = 1 << 22

// before returns the node as it was before the record.
func (s *State) before(p *nodePatch) *node {
	switch {
	case p.node < len(s.nodes):
		return s.nodes[p.node]
	case s.run.id == 0:
		return newNode(p.node) // a step, in the record that accepts the run
	}
	return &blank
}

// after returns the node as it is after the record.
func (s *State) after(p *nodePatch) *node {
	old := s.before(p)
	n := *old
	overwrite(nodeFields, p.mask, &n, &p.to)
	n.attempts = withPatches(n.attempts, p.attempts)
	was := nodeValues(old)
	for k, h := range nodeValues(&n) {
		if *h != *was[k] { // what was resolved earlier keeps its value
			s.resolve(h, n.key)
		}
	}
	return &n
}

// install replaces a node and keeps the indexes right.
func (s *State) install(i int, n *node) {
	old := &blank
	switch {
	case i < len(s.nodes):
		old = s.nodes[i]
		s.nodes[i] = n
	case i == len(s.nodes) && i < maxNodes:
		s.nodes = append(s.nodes, n)
	default:
		return // a gap: only a damaged record has one
	}
	s.expiry.change(i, old.expires(), n.expires())
	s.limits.change(i, old.limit(), n.limit())
	s.wakes.change(i, old.wake(), n.wake())
	for h := range s.queues {
		s.queues[h].change(i, old.place(h), n.place(h))
	}
	if old.output != n.output {
		s.remember(n.output, origin{originOutput, i})
	}
	if old.input != n.input {
		s.remember(n.input, origin{originInput, i})
	}
}

// place returns the node's key in the queue of hold h; 0 = not in it.
func (n *node) place(h int) instant {
	if n.hold == h+1 {
		return n.queue
	}
	return 0
}

func (s *State) prune() {
	s.expiry.prune(func(i int) instant { return s.nodes[i].expires() })
	s.limits.prune(func(i int) instant { return s.nodes[i].limit() })
	s.wakes.prune(func(i int) instant { return s.nodes[i].wake() })
	for h := range s.queues {
		s.queues[h].prune(func(i int) instant { return s.nodes[i].place(h) })
	}
}
