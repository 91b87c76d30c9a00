package machine

import (
	"fmt"

	"github.com/saga-engine/engine/dsl"
	"github.com/saga-engine/engine/engine/internal/model"
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
	head    model.Head
	trouble model.Trouble
	slots   []*slot
}

// A slot is a node while it is read.
type slot struct {
	model.Node
	more     model.More
	attempts []model.Attempt
}

// record reads a record and applies it; it returns how many facts it has. After
// a failure, of which the decoder knows, the state is as before.
func (f *folder) record(s *State, wf *dsl.Workflow) int {
	d := &f.d
	at := model.Instant(d.uint())
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
	if mask&model.HeadBits != 0 {
		f.head = *now.Head
		now.Head = &f.head
	}
	if mask&model.TroubleBits != 0 {
		f.trouble = *now.Trouble
		now.Trouble = &f.trouble
	}
	d.runFields(kind, mask, now, f.r.event)
	if mask&model.RunOutputsBit != 0 {
		s.resolveOutputs(now.Outputs)
	}
	return mask
}

// readNode reads what changes of a node into the k-th slot.
func (f *folder) readNode(s *State, k int, h *heading) {
	if k == len(f.slots) {
		f.slots = append(f.slots, new(slot))
	}
	d, old, n := &f.d, s.before(h.node), f.slots[k]
	n.Node = *old
	n.Node.Attempts = append(n.attempts[:0], old.Attempts...)
	if h.mask&model.MoreBits != 0 {
		n.more = *old.More
		n.Node.More = &n.more
	}
	d.nodeFields(h, &n.Node)
	if h.mask != 0 {
		s.resolveNode(&n.Node, h.mask)
	}
	for range d.attempts(h) {
		call, mask := d.attempt(h)
		at, found := model.Place(n.Node.Attempts, call)
		if !found {
			n.Node.Attempts = model.Insert(n.Node.Attempts, at, model.Attempt{Call: call})
		}
		d.attemptFields(h, mask, &n.Node.Attempts[at])
	}
	n.Node.Attempts = model.Forget(n.Node.Attempts)
	n.attempts = n.Node.Attempts[:0]
	f.r.nodes = append(f.r.nodes, model.NodePatch{Node: h.node, Mask: h.mask})
	f.o.nodes = append(f.o.nodes, &n.Node)
}

// install makes the state what was read.
func (f *folder) install(s *State, mask uint64) {
	was := s.run
	now := f.o.run
	switch {
	case mask&model.HeadBits == 0:
	case s.private && was.Head != &model.NoHead:
		*was.Head = f.head
		now.Head = was.Head
	default:
		own := f.head
		now.Head = &own
	}
	switch {
	case mask&model.TroubleBits == 0:
	case s.private && was.Trouble != &model.NoTrouble:
		*was.Trouble = f.trouble
		now.Trouble = was.Trouble
	default:
		own := f.trouble
		now.Trouble = &own
	}
	s.installRun(now, f.r.at, mask&model.RunVarsBit != 0)
	for k := range f.r.nodes {
		s.overwrite(f.r.nodes[k].Node, f.o.nodes[k], f.r.nodes[k].Mask)
	}
	s.tally(f.r.event)
	s.prune()
	s.cached(nil)
	if _, settled := f.r.event.(SettleRequested); settled {
		s.cache = nil // a result may have been corrected
	}
}

// overwrite is install for a node that lies in memory which is used again.
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
