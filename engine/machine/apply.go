package machine

import (
	"slices"

	"github.com/saga-engine/engine/engine/internal/model"
)

// A Change is the change that a record makes to a state. It holds the run and the changed nodes,
// each before and after the record. A record may refer to values of the state before the record, so
// the Change is computed completely before the state changes. Package story reads Changes and must
// not change their data.
type Change struct {
	s       *State
	at      model.Instant
	event   Event
	patches []model.NodePatch
	cache   *cache // values that the decision cached; nil = none, as for a record from a journal
	empty   bool   // the record changes nothing
	visible bool   // the record has something to show to people

	run model.Run // the run after the record
	// The changed nodes as they are after the record, in the order of the field `patches`. If this
	// list is nil, the field To of each patch holds the complete node.
	nodes []*model.Node
}

// Apply applies the record to the state. The result is the same as that of State.Apply, but this
// method does not compute the change again. If the record is Empty, Apply does nothing.
func (c *Change) Apply() {
	if !c.empty {
		c.s.apply(c)
	}
}

// Visible reports whether this record has something to show to people. It also returns true for an
// event after the end of the run, although such an event changes nothing.
func (c *Change) Visible() bool { return c.visible }

// Event returns the event of the record.
func (c *Change) Event() Event { return c.event }

// At returns the time of the record.
func (c *Change) At() model.Instant { return c.at }

// Before returns the run as it was before the record. The result is correct only until Apply
// changes the state.
func (c *Change) Before() *model.Run { return &c.s.run }

// After returns the run as it is after the record.
func (c *Change) After() *model.Run { return &c.run }

// Nodes returns all nodes as they were before the record. The result is correct only until Apply
// changes the state.
func (c *Change) Nodes() []*model.Node { return c.s.nodes }

// Len returns the number of nodes that change.
func (c *Change) Len() int { return len(c.patches) }

// Node returns the number of the k-th changed node, and this node before and after the record. The
// result `was` is correct only until Apply changes the state.
func (c *Change) Node(k int) (i int, was, now *model.Node) {
	i = c.patches[k].Node
	return i, c.s.before(i), c.now(k)
}

// now returns the k-th changed node as it is after the record.
func (c *Change) now(k int) *model.Node {
	if c.nodes == nil {
		return c.patches[k].To
	}
	return c.nodes[k]
}

// afterRun returns the run as it is after a record with the patch p. It does not change the
// state.
func (s *State) afterRun(p *model.RunPatch) model.Run {
	now := s.run
	if p.Mask&model.HeadBits != 0 {
		own := *now.Head
		now.Head = &own
	}
	if p.Mask&model.RareBits != 0 {
		own := *now.Rare
		now.Rare = &own
	}
	model.Overwrite(model.RunFields, p.Mask, &now, &p.To)
	if p.Mask&model.RunOutputsBit != 0 {
		now.Outputs = slices.Clone(now.Outputs)
		s.resolveOutputs(now.Outputs)
	}
	return now
}

// resolveOutputs sets the value of each output that is a reference to another value of the run.
func (s *State) resolveOutputs(outputs []model.Output) {
	for k := range outputs {
		s.resolve(&outputs[k].Value, "")
	}
}

// apply changes the state as the Change c says.
func (s *State) apply(c *Change) {
	s.private = false // from now on the state may share nodes with the record
	s.installRun(c.run, c.at, s.run.Vars != c.run.Vars)
	for k := range c.patches {
		i, n := c.patches[k].Node, c.now(k)
		if s.index(i, n) != nil {
			s.set(i, n)
		}
	}
	s.landed(c.event, c.cache)
}

// landed updates the indexes, the cache and the total size of the checkpoints after a record was
// applied. The parameter `made` is the cache that the decision on the record has filled; nil =
// there is none.
func (s *State) landed(event Event, made *cache) {
	s.tally(event)
	s.signals.landed(event)
	s.prune()
	s.cached(made)
	if _, settled := event.(SettleRequested); settled {
		s.cache = nil // a correction may have changed a result that is in the cache
	}
}

// installRun replaces the run of the state by the parameter `now`. If the state has no node for a
// step of the run, or no queue for an agent in Run.Holds, installRun adds it. The parameter `at` is
// the time of the record. The parameter `vars` is true if the record changes the variables.
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

// cached updates the state's cache after a record was applied. A cache is pending if it has values
// from a decision whose record is not applied yet. The parameter `landed` is the cache of the
// applied record. If the state's cache is pending, there are two cases. If it is the cache
// `landed`, it is not pending any more. If it is the cache of another record, it is dropped.
func (s *State) cached(landed *cache) {
	switch {
	case s.cache == nil || !s.cache.pending:
	case s.cache == landed:
		s.cache.pending = false
	default:
		s.cache = nil // the cache was made for a record that was not committed
	}
}

// before returns node i as it is before the next record. If the next record is the first of the
// run, it returns a step that has not begun. If a later record adds the node, as an instance or as
// a step of a move, it returns the empty node model.Blank.
func (s *State) before(i int) *model.Node {
	switch {
	case i < len(s.nodes):
		return s.nodes[i]
	case s.run.ID == 0:
		return model.NewNode(i) // the step is new: this record accepts the run
	}
	return &model.Blank
}

// after returns the complete node as it is after a record with the patch p. The method is not
// needed for a record that was decided on this state: in such a record, the field To of each patch
// is the complete node.
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

// resolveNode sets each value of a node that is a reference to another value of the run. It does so
// only in the fields whose bits are in the parameter `mask`. Other fields have their values
// already.
func (s *State) resolveNode(n *model.Node, mask uint64) {
	for k, h := range model.NodeValues(n) {
		if mask&model.ValueBits[k] != 0 {
			s.resolve(h, n.Key)
		}
	}
}

// index updates all indexes before node i is replaced by n. It returns the node as it was; nil
// if the number i is not valid.
func (s *State) index(i int, n *model.Node) (old *model.Node) {
	old = &model.Blank
	switch {
	case i < len(s.nodes):
		old = s.nodes[i]
	case i > len(s.nodes) || i >= model.MaxNodes:
		return nil // i is too large: only a damaged record leaves out a node number
	}
	s.expiry.change(i, old.Expires(), n.Expires())
	s.limits.change(i, old.Limit(), n.Limit())
	s.wakes.change(i, old.Wake(), n.Wake())
	for h := range s.queues {
		s.queues[h].change(i, old.QueuedFor(h), n.QueuedFor(h))
	}
	s.values.bytes += n.Weight() - old.Weight()
	if n.Signal.Number != old.Signal.Number || len(n.Handed.Signals) != 0 || len(old.Handed.Signals) != 0 {
		s.signals.change(old.More, n.More)
	}
	if old.Output != n.Output {
		s.values.remember(n.Output, model.Origin{Kind: model.OriginOutput, Node: int32(i)})
	}
	if old.Input != n.Input {
		s.values.remember(n.Input, model.Origin{Kind: model.OriginInput, Node: int32(i)})
	}
	return old
}

// set replaces node i by n, or adds n. The caller must call the method `index` first.
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
		s.queues[h].prune(func(i int) model.Instant { return s.nodes[i].QueuedFor(h) })
	}
}

// overwrite replaces node i by a copy of the node in the parameter `now`. A copy is necessary,
// because the Loader reuses the memory of the original for the next record. The parameter `mask`
// has the bits of the changed fields.
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

// tally adds the size of a checkpoint, plus checkpointCost, to the total size of the run's
// checkpoints. It ignores all other events.
func (s *State) tally(e Event) {
	if ev, ok := e.(AttemptProgress); ok && ev.Blob != nil {
		s.checkpoints += int64(len(ev.Blob)) + checkpointCost
	}
}
