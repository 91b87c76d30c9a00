package wire

import (
	"encoding/binary"
	"math/bits"

	"github.com/saga-engine/engine/dsl"
	"github.com/saga-engine/engine/engine/internal/model"
	"github.com/saga-engine/engine/engine/machine"
)

// records writes the bytes that Encode returns.
func (e *encoder) records(records []machine.Record) error {
	e.uint(Format)
	e.uint(uint64(len(records)))
	for k := range records {
		first := len(e.b)
		e.strings, e.docs, e.named, e.valued = e.strings[:0], e.docs[:0], nil, nil
		if err := e.record(&records[k]); err != nil {
			return err
		}
		if len(records) > 1 {
			e.b = precede(e.b, first)
		}
	}
	return nil
}

// precede counts the bytes b[first:] and inserts this number before them. It returns the longer
// slice.
func precede(b []byte, first int) []byte {
	size := len(b) - first
	var length [binary.MaxVarintLen64]byte
	n := binary.PutUvarint(length[:], uint64(size))
	b = append(b, length[:n]...)
	copy(b[first+n:], b[first:first+size])
	copy(b[first:], length[:n])
	return b
}

func (e *encoder) record(r *machine.Record) error {
	d, event := r.Delta(), r.Event()
	e.at = d.At
	e.uint(uint64(d.At))
	if err := e.event(event); err != nil {
		return err
	}
	e.run(d.Run, event)
	e.uint(uint64(len(d.Nodes)))
	next := 0
	for k := range d.Nodes {
		p := &d.Nodes[k]
		e.node(p, p.Node-next, event)
		next = p.Node + 1
	}
	return nil
}

// run writes a number and then the values that cannot be computed from the template. The two lowest
// bits of the number are the template. The other bits are a set of fields. With a template, these
// are the fields in which this change differs from the usual change with this template. Without a
// template, these are all changed fields. The number 0 means that the run does not change.
func (e *encoder) run(p *model.RunPatch, event machine.Event) {
	if p == nil {
		e.uint(0)
		return
	}
	kind := noRunTemplate
	if !e.general {
		kind = runTemplateOf(p, e.at, event)
	}
	e.uint((p.Mask^kind.fields(event))<<2 | uint64(kind))
	put(e, runCodec, p.Mask&^kind.follows(), &p.To)
}

// node writes a number and then the values that cannot be computed from the template. The number
// has these bits:
//   - Bits 1 and 2 are the template. Without a template, bit 0 is 0, and the sets of all changed
//     fields follow the number.
//   - With a template, bit 0 is 1 if the changed fields differ from those of the template, or if
//     the call number of a start is not 1. Then the sets of the differing fields follow the
//     number. For a start, the call number follows, too.
//   - The bits above are the number of nodes between the previous node and this one. The end of an
//     attempt does not need these bits, because its event names the node.
func (e *encoder) node(p *model.NodePatch, distance int, event machine.Event) {
	kind := noTemplate
	if !e.general {
		kind = templateOf(p, e.at, event)
	}
	if kind == noTemplate {
		e.uint(uint64(distance) << 3)
		e.uint(p.Mask)
		put(e, nodeCodec, p.Mask, p.To)
		e.uint(uint64(len(p.Attempts)))
		for k := range p.Attempts {
			a := &p.Attempts[k]
			e.int(int64(a.To.Call))
			e.uint(uint64(a.Mask))
			put(e, attemptCodec, uint64(a.Mask), &a.To)
		}
		return
	}
	first, u, a := uint64(kind)<<1, &templates[kind], &p.Attempts[0]
	if kind == stepStarts {
		first |= uint64(distance) << 3
	}
	other, otherAttempt := p.Mask^kind.fields(event), uint64(a.Mask)^u.attempt
	again := kind == stepStarts && a.To.Call != 1
	if other|otherAttempt != 0 || again {
		e.uint(first | 1)
		e.uint(other)
		e.uint(otherAttempt)
		if kind == stepStarts {
			e.int(int64(a.To.Call))
		}
	} else {
		e.uint(first)
	}
	put(e, nodeCodec, p.Mask&^u.follow, p.To)
	put(e, attemptCodec, uint64(a.Mask)&^u.attemptFollow, &a.To)
}

// put writes those fields of v whose bits are in the parameter `mask`.
func put[T any](e *encoder, fields []codec[T], mask uint64, v *T) {
	for ; mask != 0; mask &= mask - 1 {
		fields[bits.TrailingZeros64(mask)].put(e, v)
	}
}

// get reads the fields whose bits are in the parameter `mask`, and sets them in v.
func get[T any](d *decoder, fields []codec[T], mask uint64, v *T) {
	for ; mask != 0; mask &= mask - 1 {
		fields[bits.TrailingZeros64(mask)].get(d, v)
	}
}

func (d *decoder) record() machine.Record {
	r := model.Delta{At: model.Instant(d.uint())}
	d.at = r.At
	event := d.event()
	if kind, mask := d.run(event); mask != 0 {
		r.Run = &model.RunPatch{Mask: mask, To: model.Run{Head: &model.NoHead, Rare: &model.NoRare}}
		if mask&model.HeadBits != 0 {
			r.Run.To.Head = new(model.Head)
		}
		if mask&model.RareBits != 0 {
			r.Run.To.Rare = new(model.Rare)
		}
		d.runFields(kind, mask, &r.Run.To, event)
	}
	next := 0
	count := d.count()
	if count > 0 {
		r.Nodes = make([]model.NodePatch, 0, min(count, 64))
	}
	var to []model.Node
	for left := count; left > 0; left-- {
		h := d.node(&next, event)
		if d.err != nil {
			break
		}
		if len(to) == 0 { // allocate a few nodes at a time: count may be wrong if the data is damaged
			to = make([]model.Node, min(left, 64))
		}
		p := model.NodePatch{Node: h.node, Mask: h.mask}
		p.To, to = &to[0], to[1:]
		p.To.More = &model.NoMore
		if p.Mask&model.MoreBits != 0 {
			p.To.More = new(model.More)
		}
		d.nodeFields(&h, p.To)
		for n := d.attempts(&h); n > 0; n-- {
			if p.Attempts == nil {
				p.Attempts = make([]model.AttemptPatch, 0, min(n, 16))
			}
			call, mask := d.attempt(&h)
			a := model.AttemptPatch{Mask: uint16(mask), To: model.Attempt{Call: call}}
			d.attemptFields(&h, mask, &a.To)
			p.Attempts = append(p.Attempts, a)
		}
		r.Nodes = append(r.Nodes, p)
	}
	return machine.NewRecord(event, r)
}

// run reads the beginning of the run's patch. It returns the template and the set of fields
// that change; 0 = the run does not change.
func (d *decoder) run(event machine.Event) (runTemplate, uint64) {
	if d.format < 3 {
		return noRunTemplate, d.mask(len(runCodec))
	}
	first := d.uint()
	kind := runTemplate(first & 3)
	mask := first>>2 ^ kind.fields(event)
	if _, start := event.(machine.Started); mask>>len(runCodec) != 0 || kind > runEnded || kind == runAccepted && !start {
		d.fail()
		return noRunTemplate, 0
	}
	return kind, mask
}

// runFields sets those fields of the run whose bits are in `mask`. It computes the fields that the
// template determines, and reads the others.
func (d *decoder) runFields(kind runTemplate, mask uint64, to *model.Run, event machine.Event) {
	kind.set(to, mask&kind.follows(), d.at, event)
	get(d, runCodec, mask&^kind.follows(), to)
	if to.Steps < 0 || to.Steps > model.MaxSteps {
		d.fail()
	}
}

// A heading is the beginning of a node's patch: everything before the values of the fields.
type heading struct {
	node    int
	mask    uint64
	kind    template
	call    int32     // call number of the changed attempt; set only if a template is used
	attempt uint64    // bits of the attempt's fields that change; set only if a template is used
	output  dsl.Value // output of the attempt; set only if the template is for the end of an attempt
}

// node reads the beginning of a node's patch. The caller sets *next to the smallest number that the
// node can have. The method `node` sets *next to the node's number plus 1.
func (d *decoder) node(next *int, event machine.Event) heading {
	var h heading
	distance := d.uint()
	odd := false
	if d.format >= 3 {
		h.kind, odd = template(distance>>1&3), distance&1 != 0
		distance >>= 3
	}
	u := &templates[h.kind]
	switch h.kind {
	case noTemplate:
		h.node = d.nodeNumber(next, distance)
		h.mask = d.mask(len(nodeCodec))
		return h
	case stepStarts:
		h.call = 1
	default:
		ev, ok := event.(machine.AttemptOK)
		if !ok {
			d.fail()
		}
		distance = uint64(ev.Attempt.Node - *next)
		h.call, h.output = int32(d.small(int64(ev.Attempt.Call))), ev.Output
	}
	h.node = d.nodeNumber(next, distance)
	h.mask, h.attempt = h.kind.fields(event), u.attempt
	if odd {
		h.mask ^= d.mask(len(nodeCodec))
		h.attempt ^= d.mask(len(attemptCodec))
		if h.kind == stepStarts {
			h.call = int32(d.index())
		}
	}
	return h
}

// nodeNumber returns the number of a node: *next plus the distance. Then it sets *next to this
// number plus 1.
func (d *decoder) nodeNumber(next *int, distance uint64) int {
	i := *next + d.small(int64(distance))
	if *next = i + 1; *next > model.MaxNodes {
		d.fail()
	}
	return i
}

// nodeFields sets the fields of a node that change. It computes the fields that the template
// determines, and reads the other fields.
func (d *decoder) nodeFields(h *heading, n *model.Node) {
	u := &templates[h.kind]
	h.kind.set(n, h.mask&u.follow, d.at, h.call, h.output)
	get(d, nodeCodec, h.mask&^u.follow, n)
}

// attempts returns the number of the node's attempts that change. With a template this is 1;
// otherwise the method reads the number.
func (d *decoder) attempts(h *heading) int {
	if h.kind != noTemplate {
		return 1
	}
	return d.count()
}

// attempt returns the call number of the next attempt that changes, and the set of the attempt's
// fields that change. With a template both are in h; otherwise attempt reads them.
func (d *decoder) attempt(h *heading) (call int32, mask uint64) {
	if h.kind != noTemplate {
		return h.call, h.attempt
	}
	return int32(d.index()), d.mask(len(attemptCodec))
}

// attemptFields sets the fields of an attempt that change. It computes the fields that the template
// determines, and reads the other fields.
func (d *decoder) attemptFields(h *heading, mask uint64, a *model.Attempt) {
	setAttempt(a, mask&templates[h.kind].attemptFollow, d.at)
	get(d, attemptCodec, mask&^templates[h.kind].attemptFollow, a)
}
