package machine

import "github.com/saga-engine/engine/engine/internal/model"

// A Loader applies records to a state while a reader (package wire) decodes them. It makes no
// Record values and reuses its memory for every record. So it is much faster than State.Apply.
// For each record, the reader first calls Begin. It calls Run if the run changes. Then it
// calls Node for each node that changes, and Node.Attempt for each changed attempt of that
// node. The reader sets the fields that the record contains. Change then returns the change
// that the record makes, and Apply changes the state. If a record cannot be read to its end,
// the reader does not call Apply, and the state stays as it was.
//
// A Loader also turns a state into the content of a snapshot (Image) and back (Restore).
//
// The zero Loader is ready to use. Only one goroutine at a time may use a Loader.
type Loader struct {
	s       *State
	at      model.Instant
	event   Event
	mask    uint64            // bit mask of the run's fields that change
	patches []model.NodePatch // one patch for each changed node; only Node and Mask are set
	head    model.Head
	rare    model.Rare
	slots   []*nodeBuffer
	change  Change
}

// A nodeBuffer holds the data of one changed node while the reader reads a record.
type nodeBuffer struct {
	node     model.Node
	more     model.More
	attempts []model.Attempt
}

// Begin starts a new record. The caller must call it before each record. The parameter `s` is the
// state before the record. The parameters `at` and `event` are the time and the event of the
// record.
func (l *Loader) Begin(s *State, at model.Instant, event Event) {
	l.s, l.at, l.event, l.mask = s, at, event, 0
	l.patches = l.patches[:0]
	l.change = Change{s: s, at: at, event: event, run: s.run, nodes: l.change.nodes[:0]}
}

// Run returns a copy of the run as it was before the record. Then the caller sets those fields
// of the copy whose bits are in the parameter `mask`.
func (l *Loader) Run(mask uint64) *model.Run {
	now := &l.change.run
	l.mask = mask
	if mask&model.HeadBits != 0 {
		l.head = *now.Head
		now.Head = &l.head
	}
	if mask&model.RareBits != 0 {
		l.rare = *now.Rare
		now.Rare = &l.rare
	}
	return now
}

// Node returns a copy of node i as it was before the record. Then the caller sets those fields
// of the copy whose bits are in the parameter `mask`. The caller must ask for the nodes in
// ascending order.
func (l *Loader) Node(i int, mask uint64) *model.Node {
	k := len(l.patches)
	if k == len(l.slots) {
		l.slots = append(l.slots, new(nodeBuffer))
	}
	old, n := l.s.before(i), l.slots[k]
	n.node = *old
	n.node.Attempts = append(n.attempts[:0], old.Attempts...)
	if mask&model.MoreBits != 0 {
		n.more = *old.More
		n.node.More = &n.more
	}
	l.patches = append(l.patches, model.NodePatch{Node: i, Mask: mask})
	l.change.nodes = append(l.change.nodes, &n.node)
	return &n.node
}

// Change returns the change that the record makes to the state. The caller calls it after it has
// read the whole record. The result is valid until the next call of Apply or Begin.
func (l *Loader) Change() *Change {
	if l.mask&model.RunOutputsBit != 0 {
		l.s.resolveOutputs(l.change.run.Outputs)
	}
	for k := range l.patches {
		n := l.slots[k]
		l.s.resolveNode(&n.node, l.patches[k].Mask)
		n.node.Attempts = model.Forget(n.node.Attempts)
		n.attempts = n.node.Attempts[:0]
	}
	l.change.patches = l.patches
	l.change.empty = l.mask == 0 && len(l.patches) == 0 && !says(l.event)
	l.change.visible = !l.change.empty
	return &l.change
}

// Apply applies the record to the state. The caller must call Change first.
func (l *Loader) Apply() {
	if l.change.empty {
		return
	}
	s, mask := l.s, l.mask
	was, now := s.run, l.change.run
	switch {
	case mask&model.HeadBits == 0:
	case s.private && was.Head != &model.NoHead:
		*was.Head = l.head
		now.Head = was.Head
	default:
		own := l.head
		now.Head = &own
	}
	switch {
	case mask&model.RareBits == 0:
	case s.private && was.Rare != &model.NoRare:
		*was.Rare = l.rare
		now.Rare = was.Rare
	default:
		own := l.rare
		now.Rare = &own
	}
	s.installRun(now, l.at, mask&model.RunVarsBit != 0)
	for k := range l.patches {
		s.overwrite(l.patches[k].Node, l.change.nodes[k], l.patches[k].Mask)
	}
	s.landed(l.event, nil)
	if len(l.slots) > keptScratch { // drop the memory of an unusually large record
		*l = Loader{}
	}
}

// Image returns everything that a state knows, for a snapshot of the run. The image shares its data
// with the state, so neither of them may be changed afterwards. If the run continues, the caller
// must pass a Clone of its state.
func (l *Loader) Image(s *State) model.Image {
	return model.Image{Run: s.run, Nodes: s.nodes, Signals: s.signals.kept(), SignalIDs: s.signals.order,
		LastSignal: s.signals.last, Checkpoints: s.checkpoints, Shared: s.values.origins(s.at)}
}

// Restore returns a state that equals the one from which Image made the parameter `im`. The new
// state uses the data of im. Every later record and every decision is the same for both states.
func (l *Loader) Restore(im model.Image) *State {
	s := &State{run: im.Run, nodes: im.Nodes, private: true, checkpoints: im.Checkpoints, signals: restoredSignals(im)}
	s.queues = make([]lazyHeap, len(s.run.Holds))
	for i, n := range s.nodes {
		s.expiry.change(i, 0, n.Expires())
		s.limits.change(i, 0, n.Limit())
		s.wakes.change(i, 0, n.Wake())
		for h := range s.queues {
			s.queues[h].change(i, 0, n.QueuedFor(h))
		}
		s.values.bytes += n.Weight() - model.Blank.Weight()
	}
	for _, o := range im.Shared {
		s.values.put(model.HashValue(s.at(o)), o)
	}
	s.prune()
	return s
}
