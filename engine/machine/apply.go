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
		s.apply(&r, s.foresee(&r))
	}
}

// ApplyCounted is Apply, and returns how many Facts the record has. It costs
// less than asking for them.
func (s *State) ApplyCounted(wf *dsl.Workflow, r Record) int {
	if r.Empty() {
		return r.CountFacts(wf, s)
	}
	t := teller{wf: wf, r: r, s: s, o: s.foresee(&r)}
	t.tell()
	s.apply(&r, t.o)
	return t.count
}

// An outcome is what a record amounts to. References mean the state before the
// record, so everything is computed before anything is installed.
type outcome struct {
	run   run
	nodes []*node // in the record's order; nil = what the record holds
}

// foresee computes what a record amounts to.
func (s *State) foresee(r *Record) outcome {
	o := outcome{run: s.run}
	if r.decidedOn(s) {
		if r.run != nil {
			o.run = r.run.to
		}
		return o
	}
	if r.run != nil {
		o.run = s.afterRun(r.run)
	}
	o.nodes = make([]*node, len(r.nodes))
	for k := range r.nodes {
		o.nodes[k] = s.after(&r.nodes[k])
	}
	return o
}

// node returns the k-th node of the record as it is after it.
func (o *outcome) node(r *Record, k int) *node {
	if o.nodes == nil {
		return r.nodes[k].to
	}
	return o.nodes[k]
}

// afterRun returns the run as it is after the record.
func (s *State) afterRun(p *runPatch) run {
	now := s.run
	if p.mask&headBits != 0 {
		own := *now.head
		now.head = &own
	}
	if p.mask&troubleBits != 0 {
		own := *now.trouble
		now.trouble = &own
	}
	overwrite(runFields, p.mask, &now, &p.to)
	if p.mask&runOutputsBit != 0 {
		now.outputs = slices.Clone(now.outputs)
		s.resolveOutputs(now.outputs)
	}
	return now
}

// resolveOutputs fills in the references of outputs.
func (s *State) resolveOutputs(outputs []output) {
	for k := range outputs {
		s.resolve(&outputs[k].value, "")
	}
}

// apply installs what a record amounts to.
func (s *State) apply(r *Record, o outcome) {
	s.private = false // it may share nodes with the record from now on
	s.installRun(o.run, r.at, s.run.vars != o.run.vars)
	for k := range r.nodes {
		i, n := r.nodes[k].node, o.node(r, k)
		if s.index(i, n) != nil {
			s.set(i, n)
		}
	}
	s.tally(r.event)
	s.prune()
	s.cached(r.cache)
	if _, settled := r.event.(SettleRequested); settled {
		s.cache = nil // a result may have been corrected
	}
}

// installRun replaces the run and makes room for its steps and queues.
func (s *State) installRun(now run, at instant, vars bool) {
	records := s.run.records
	s.run = now
	s.run.records = records + 1
	s.run.last = at
	if vars {
		s.remember(s.run.vars, origin{kind: originVars})
	}
	if steps := min(int(s.run.steps), maxNodes); len(s.nodes) < steps {
		s.nodes = slices.Grow(s.nodes, steps-len(s.nodes))
		for first := len(s.nodes); first < steps; first = len(s.nodes) {
			s.nodes = appendSteps(s.nodes, first, min(len(pristine), steps-first))
		}
	}
	for len(s.queues) < len(s.run.holds) {
		s.queues = append(s.queues, lazyHeap{})
	}
}

// cached keeps what was cached if the record that it was cached for has landed.
func (s *State) cached(landed *cache) {
	switch {
	case s.cache == nil || !s.cache.pending:
	case s.cache == landed:
		s.cache.pending = false
	default:
		s.cache = nil // made for a record that did not land
	}
}

// maxNodes bounds what a damaged record can make the state allocate.
const maxNodes = 1 << 22

// before returns a node as it was before the record.
func (s *State) before(i int) *node {
	switch {
	case i < len(s.nodes):
		return s.nodes[i]
	case s.run.id == 0:
		return newNode(i) // a step, in the record that accepts the run
	}
	return &blank
}

// after returns the node as it is after a record that was not decided on this
// state.
func (s *State) after(p *nodePatch) *node {
	n := s.before(p.node).box()
	if p.mask&moreBits != 0 {
		own := *n.more
		n.more = &own
	}
	overwrite(nodeFields, p.mask, n, p.to)
	n.attempts = withPatches(n.attempts, p.attempts)
	s.resolveNode(n, p.mask)
	return n
}

// resolveNode fills in the values of the fields in mask; what was resolved
// earlier keeps its value.
func (s *State) resolveNode(n *node, mask uint64) {
	for k, h := range nodeValues(n) {
		if mask&valueBits[k] != 0 {
			s.resolve(h, n.key)
		}
	}
}

// index keeps the indexes right for a node that is about to be replaced, and
// returns it as it was; nil if there is no place for it.
func (s *State) index(i int, n *node) (old *node) {
	old = &blank
	switch {
	case i < len(s.nodes):
		old = s.nodes[i]
	case i > len(s.nodes) || i >= maxNodes:
		return nil // a gap: only a damaged record has one
	}
	s.expiry.change(i, old.expires(), n.expires())
	s.limits.change(i, old.limit(), n.limit())
	s.wakes.change(i, old.wake(), n.wake())
	for h := range s.queues {
		s.queues[h].change(i, old.place(h), n.place(h))
	}
	s.values.bytes += n.weight() - old.weight()
	if old.output != n.output {
		s.remember(n.output, origin{originOutput, int32(i)})
	}
	if old.input != n.input {
		s.remember(n.input, origin{originInput, int32(i)})
	}
	return old
}

// set replaces a node that index has been told of.
func (s *State) set(i int, n *node) {
	if i == len(s.nodes) {
		s.nodes = append(s.nodes, n)
		return
	}
	s.nodes[i] = n
}

// place returns the node's key in the queue of hold h; 0 = not in it.
func (n *node) place(h int) instant {
	if int(n.hold) == h+1 {
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
