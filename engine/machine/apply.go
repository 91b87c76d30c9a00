package machine

import (
	"slices"

	"github.com/saga-engine/engine/engine/internal/model"
)

// A Change is what a record makes of a state, before the state is changed: the run and
// the nodes that the record changes, as they were and as they will be. References in the
// record mean the state before it, so everything is computed before anything is
// installed. Readers (package story) must not change what they get.
type Change struct {
	s       *State
	at      model.Instant
	event   Event
	patches []model.NodePatch
	cache   *cache // see Record
	empty   bool   // the record changes nothing
	tells   bool

	run   model.Run     // as it will be
	nodes []*model.Node // as they will be, in the order of patches; nil = those of the patches
}

// Apply folds the record into the state: State.Apply without computing the change again.
// A record that is Empty changes nothing.
func (c *Change) Apply() {
	if !c.empty {
		c.s.apply(c)
	}
}

// Tells reports whether the change has anything to tell. The answer to what reached a
// finished run changes nothing and is told.
func (c *Change) Tells() bool { return c.tells }

// Event returns what happened.
func (c *Change) Event() Event { return c.event }

// At returns when it happened.
func (c *Change) At() model.Instant { return c.at }

// Before returns the run as it was.
func (c *Change) Before() *model.Run { return &c.s.run }

// After returns the run as it will be.
func (c *Change) After() *model.Run { return &c.run }

// Nodes returns all nodes as they were.
func (c *Change) Nodes() []*model.Node { return c.s.nodes }

// Len returns how many nodes change.
func (c *Change) Len() int { return len(c.patches) }

// Node returns the number of the k-th node that changes, as it was and as it will be.
func (c *Change) Node(k int) (i int, was, now *model.Node) {
	i = c.patches[k].Node
	return i, c.s.before(i), c.now(k)
}

// now returns the k-th node that changes as it will be.
func (c *Change) now(k int) *model.Node {
	if c.nodes == nil {
		return c.patches[k].To
	}
	return c.nodes[k]
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
func (s *State) apply(c *Change) {
	s.private = false // it may share nodes with the record from now on
	s.installRun(c.run, c.at, s.run.Vars != c.run.Vars)
	for k := range c.patches {
		i, n := c.patches[k].Node, c.now(k)
		if s.index(i, n) != nil {
			s.set(i, n)
		}
	}
	s.landed(c.event, c.cache)
}

// landed does what every record that was applied brings with it.
func (s *State) landed(event Event, made *cache) {
	s.tally(event)
	s.signals.landed(event)
	s.prune()
	s.cached(made)
	if _, settled := event.(SettleRequested); settled {
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
		s.values.remember(s.run.Vars, model.Origin{Kind: model.OriginVars})
	}
	if steps := min(int(s.run.Steps), model.MaxNodes); len(s.nodes) < steps {
		s.nodes = slices.Grow(s.nodes, steps-len(s.nodes))
		for first := len(s.nodes); first < steps; first = len(s.nodes) {
			s.nodes = model.AppendSteps(s.nodes, first, min(len(model.Pristine), steps-first))
		}
	}
	for len(s.queues) < len(s.run.Holds) {
		s.queues = append(s.queues, lazyHeap{})
	}
}

// cached keeps the cache that was made while a record was decided, if that record has
// landed.
func (s *State) cached(landed *cache) {
	switch {
	case s.cache == nil || !s.cache.pending:
	case s.cache == landed:
		s.cache.pending = false
	default:
		s.cache = nil // made for a record that did not land
	}
}

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
	case i > len(s.nodes) || i >= model.MaxNodes:
		return nil // a gap: only a damaged record has one
	}
	s.expiry.change(i, old.Expires(), n.Expires())
	s.limits.change(i, old.Limit(), n.Limit())
	s.wakes.change(i, old.Wake(), n.Wake())
	for h := range s.queues {
		s.queues[h].change(i, old.Place(h), n.Place(h))
	}
	s.values.bytes += n.Weight() - old.Weight()
	if n.Signal.Number != old.Signal.Number {
		s.signals.take(n.Signal.Number)
	}
	if old.Output != n.Output {
		s.values.remember(n.Output, model.Origin{Kind: model.OriginOutput, Node: int32(i)})
	}
	if old.Input != n.Input {
		s.values.remember(n.Input, model.Origin{Kind: model.OriginInput, Node: int32(i)})
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

// overwrite replaces a node by one that lies in memory which is used again.
func (s *State) overwrite(i int, now *model.Node, mask uint64) {
	old := s.index(i, now)
	switch {
	case old == nil:
	case i < len(s.nodes) && s.private && (i >= len(model.Pristine) || old != &model.Pristine[i]):
		attempts, more := old.Attempts[:0], old.More
		*old = *now
		old.Attempts = append(attempts, now.Attempts...)
		if old.More = more; mask&model.MoreBits != 0 {
			old.Own(now.More)
		}
	default:
		n := now.Box()
		if mask&model.MoreBits != 0 {
			n.More = &model.NoMore
			n.Own(now.More)
		}
		s.set(i, n)
	}
}

// tally counts what an event adds to the run's checkpoints.
func (s *State) tally(e Event) {
	if ev, ok := e.(AttemptProgress); ok && ev.Blob != nil {
		s.checkpoints += int64(len(ev.Blob)) + checkpointCost
	}
}
