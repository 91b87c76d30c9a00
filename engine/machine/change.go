package machine

import "github.com/saga-engine/engine/engine/internal/model"

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
