package machine

import (
	"slices"

	"github.com/saga-engine/engine/dsl"
	"github.com/saga-engine/engine/engine/internal/model"
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
	run   model.Run
	nodes []*model.Node // in the record's order; nil = what the record holds
}

// foresee computes what a record amounts to.
func (s *State) foresee(r *Record) outcome {
	o := outcome{run: s.run}
	if r.decidedOn(s) {
		if r.run != nil {
			o.run = r.run.To
		}
		return o
	}
	if r.run != nil {
		o.run = s.afterRun(r.run)
	}
	o.nodes = make([]*model.Node, len(r.nodes))
	for k := range r.nodes {
		o.nodes[k] = s.after(&r.nodes[k])
	}
	return o
}

// node returns the k-th node of the record as it is after it.
func (o *outcome) node(r *Record, k int) *model.Node {
	if o.nodes == nil {
		return r.nodes[k].To
	}
	return o.nodes[k]
}

// afterRun returns the run as it is after the record.
func (s *State) afterRun(p *model.RunPatch) model.Run {
	now := s.run
	if p.Mask&model.HeadBits != 0 {
		own := *now.Head
		now.Head = &own
	}
	if p.Mask&model.TroubleBits != 0 {
		own := *now.Trouble
		now.Trouble = &own
	}
	model.Overwrite(model.RunFields, p.Mask, &now, &p.To)
	if p.Mask&model.RunOutputsBit != 0 {
		now.Outputs = slices.Clone(now.Outputs)
		s.resolveOutputs(now.Outputs)
	}
	return now
}

// resolveOutputs fills in the references of outputs.
func (s *State) resolveOutputs(outputs []model.Output) {
	for k := range outputs {
		s.resolve(&outputs[k].Value, "")
	}
}

// apply installs what a record amounts to.
func (s *State) apply(r *Record, o outcome) {
	s.private = false // it may share nodes with the record from now on
	s.installRun(o.run, r.at, s.run.Vars != o.run.Vars)
	for k := range r.nodes {
		i, n := r.nodes[k].Node, o.node(r, k)
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
func (s *State) installRun(now model.Run, at model.Instant, vars bool) {
	records := s.run.Records
	s.run = now
	s.run.Records = records + 1
	s.run.Last = at
	if vars {
		s.remember(s.run.Vars, model.Origin{Kind: model.OriginVars})
	}
	if steps := min(int(s.run.Steps), maxNodes); len(s.nodes) < steps {
		s.nodes = slices.Grow(s.nodes, steps-len(s.nodes))
		for first := len(s.nodes); first < steps; first = len(s.nodes) {
			s.nodes = model.AppendSteps(s.nodes, first, min(len(model.Pristine), steps-first))
		}
	}
	for len(s.queues) < len(s.run.Holds) {
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
func (s *State) before(i int) *model.Node {
	switch {
	case i < len(s.nodes):
		return s.nodes[i]
	case s.run.ID == 0:
		return model.NewNode(i) // a step, in the record that accepts the run
	}
	return &model.Blank
}

// after returns the node as it is after a record that was not decided on this
// state.
func (s *State) after(p *model.NodePatch) *model.Node {
	n := s.before(p.Node).Box()
	if p.Mask&model.MoreBits != 0 {
		own := *n.More
		n.More = &own
	}
	model.Overwrite(model.NodeFields, p.Mask, n, p.To)
	n.Attempts = model.WithPatches(n.Attempts, p.Attempts)
	s.resolveNode(n, p.Mask)
	return n
}

// resolveNode fills in the values of the fields in mask; what was resolved
// earlier keeps its value.
func (s *State) resolveNode(n *model.Node, mask uint64) {
	for k, h := range model.NodeValues(n) {
		if mask&model.ValueBits[k] != 0 {
			s.resolve(h, n.Key)
		}
	}
}

// index keeps the indexes right for a node that is about to be replaced, and
// returns it as it was; nil if there is no place for it.
func (s *State) index(i int, n *model.Node) (old *model.Node) {
	old = &model.Blank
	switch {
	case i < len(s.nodes):
		old = s.nodes[i]
	case i > len(s.nodes) || i >= maxNodes:
		return nil // a gap: only a damaged record has one
	}
	s.expiry.change(i, old.Expires(), n.Expires())
	s.limits.change(i, old.Limit(), n.Limit())
	s.wakes.change(i, old.Wake(), n.Wake())
	for h := range s.queues {
		s.queues[h].change(i, old.Place(h), n.Place(h))
	}
	s.values.bytes += n.Weight() - old.Weight()
	if old.Output != n.Output {
		s.remember(n.Output, model.Origin{Kind: model.OriginOutput, Node: int32(i)})
	}
	if old.Input != n.Input {
		s.remember(n.Input, model.Origin{Kind: model.OriginInput, Node: int32(i)})
	}
	return old
}

// set replaces a node that index has been told of.
func (s *State) set(i int, n *model.Node) {
	if i == len(s.nodes) {
		s.nodes = append(s.nodes, n)
		return
	}
	s.nodes[i] = n
}

func (s *State) prune() {
	s.expiry.prune(func(i int) model.Instant { return s.nodes[i].Expires() })
	s.limits.prune(func(i int) model.Instant { return s.nodes[i].Limit() })
	s.wakes.prune(func(i int) model.Instant { return s.nodes[i].Wake() })
	for h := range s.queues {
		s.queues[h].prune(func(i int) model.Instant { return s.nodes[i].Place(h) })
	}
}
