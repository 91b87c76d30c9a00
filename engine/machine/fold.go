package machine

import (
	"fmt"

	"github.com/saga-engine/engine/dsl"
)

// Fold reads what EncodeRecords wrote and applies the records in order: what
// DecodeRecords and State.ApplyCounted do, at a fraction of the cost, since no
// record is made. It returns how many Facts they have; told, unless nil, is given
// each record's event. Values share memory with data. Returns ErrFormat and
// ErrCorrupt as DecodeRecords does; s is then of no more use. wf may be nil.
func (t *Scratch) Fold(s *State, wf *dsl.Workflow, data []byte, told func(Event)) (facts int, err error) {
	d := decoder{b: data, pool: &t.pool}
	if err := d.header(); err != nil {
		return 0, err
	}
	n := d.count()
	for k := range n {
		rest := d.body(n)
		if d.err == nil {
			body := &t.fold.d
			*body = decoder{b: rest, format: d.format, strings: body.strings[:0], values: body.values[:0], pool: d.pool}
			facts += t.fold.record(s, wf)
			if d.err = body.err; len(body.b) > 0 {
				d.fail()
			}
		}
		if d.err != nil {
			return 0, fmt.Errorf("%w: record %d", ErrCorrupt, k)
		}
		if told != nil {
			told(t.fold.r.event)
		}
	}
	if d.err != nil || len(d.b) > 0 {
		return 0, fmt.Errorf("%w: length", ErrCorrupt)
	}
	return facts, nil
}

// A folder turns bytes into changes of a state.
type folder struct {
	d       decoder
	r       Record // only what was told, and which nodes change
	masks   []uint64
	o       outcome
	head    head
	trouble trouble
	slots   []*slot
}

// A slot is a node while it is read.
type slot struct {
	node
	more     more
	attempts []attempt
}

// record reads a record and applies it; it returns how many facts it has. After
// a failure, of which the decoder knows, the state is as before.
func (f *folder) record(s *State, wf *dsl.Workflow) int {
	d := &f.d
	at := instant(d.uint())
	d.at = at
	f.r = Record{at: at, event: d.event(), nodes: f.r.nodes[:0]}
	f.o = outcome{run: s.run, nodes: f.o.nodes[:0]}
	f.masks = f.masks[:0]
	mask := f.readRun(s)
	next := 0
	for k := range d.count() {
		h := d.node(&next, f.r.event)
		if d.err != nil {
			break
		}
		f.readNode(s, k, &h)
	}
	if d.err != nil || mask == 0 && f.r.Empty() {
		return 0
	}
	t := teller{wf: wf, r: f.r, s: s, o: f.o}
	t.tell()
	f.install(s, mask)
	f.release()
	return t.count
}

// readRun reads what changes of the run.
func (f *folder) readRun(s *State) uint64 {
	d, now := &f.d, &f.o.run
	kind, mask := d.run(f.r.event)
	if mask == 0 {
		return 0
	}
	if mask&headBits != 0 {
		f.head = *now.head
		now.head = &f.head
	}
	if mask&troubleBits != 0 {
		f.trouble = *now.trouble
		now.trouble = &f.trouble
	}
	d.runFields(kind, mask, now, f.r.event)
	if mask&runOutputsBit != 0 {
		s.resolveOutputs(now.outputs)
	}
	return mask
}

// readNode reads what changes of a node into the k-th slot.
func (f *folder) readNode(s *State, k int, h *heading) {
	if k == len(f.slots) {
		f.slots = append(f.slots, new(slot))
	}
	d, old, n := &f.d, s.before(h.node), f.slots[k]
	n.node = *old
	n.node.attempts = append(n.attempts[:0], old.attempts...)
	if h.mask&moreBits != 0 {
		n.more = *old.more
		n.node.more = &n.more
	}
	d.nodeFields(h, &n.node)
	if h.mask != 0 {
		s.resolveNode(&n.node, h.mask)
	}
	for range d.attempts(h) {
		call, mask := d.attempt(h)
		at, found := place(n.node.attempts, call)
		if !found {
			n.node.attempts = insert(n.node.attempts, at, attempt{call: call})
		}
		d.attemptFields(h, mask, &n.node.attempts[at])
	}
	n.node.attempts = forget(n.node.attempts)
	n.attempts = n.node.attempts[:0]
	f.r.nodes = append(f.r.nodes, nodePatch{node: h.node, mask: h.mask})
	f.o.nodes = append(f.o.nodes, &n.node)
}

// install makes the state what was read.
func (f *folder) install(s *State, mask uint64) {
	was := s.run
	now := f.o.run
	switch {
	case mask&headBits == 0:
	case s.private && was.head != &noHead:
		*was.head = f.head
		now.head = was.head
	default:
		own := f.head
		now.head = &own
	}
	switch {
	case mask&troubleBits == 0:
	case s.private && was.trouble != &noTrouble:
		*was.trouble = f.trouble
		now.trouble = was.trouble
	default:
		own := f.trouble
		now.trouble = &own
	}
	s.installRun(now, f.r.at, mask&runVarsBit != 0)
	for k := range f.r.nodes {
		s.overwrite(f.r.nodes[k].node, f.o.nodes[k], f.r.nodes[k].mask)
	}
	s.tally(f.r.event)
	s.prune()
	s.cached(nil)
	if _, settled := f.r.event.(SettleRequested); settled {
		s.cache = nil // a result may have been corrected
	}
}

// overwrite is install for a node that lies in memory which is used again.
func (s *State) overwrite(i int, now *node, mask uint64) {
	old := s.index(i, now)
	switch {
	case old == nil:
	case i < len(s.nodes) && s.private && (i >= len(pristine) || old != &pristine[i]):
		attempts, more := old.attempts[:0], old.more
		*old = *now
		old.attempts = append(attempts, now.attempts...)
		if old.more = more; mask&moreBits != 0 {
			old.own(now.more)
		}
	default:
		n := now.box()
		if mask&moreBits != 0 {
			n.more = &noMore
			n.own(now.more)
		}
		s.set(i, n)
	}
}

// own makes the node's more, which nobody else has, like another.
func (n *node) own(m *more) {
	if n.more == &noMore {
		n.more = new(more)
	}
	*n.more = *m
}

// release lets go of what was read, and of the memory if that was much.
func (f *folder) release() {
	if len(f.slots) > keptScratch {
		*f = folder{d: f.d, r: Record{event: f.r.event}}
	}
}

// A pool holds strings that come again and again: names, codes, who asked. It
// may forget any.
type pool [64]string

// longPooled is the length in bytes up to which strings are pooled.
const longPooled = 40

// string returns b as a string.
func (p *pool) string(b []byte) string {
	if p == nil || len(b) == 0 || len(b) > longPooled {
		return string(b)
	}
	h := uint32(len(b))
	for _, c := range b {
		h = h*31 + uint32(c)
	}
	at := &p[h%uint32(len(p))]
	if *at != string(b) {
		*at = string(b)
	}
	return *at
}
