package machine

import "math/bits"

func (e *encoder) record(r *Record) error {
	e.at = r.at
	e.uint(uint64(r.at))
	if err := e.event(r.event); err != nil {
		return err
	}
	if r.run == nil {
		e.uint(0)
	} else {
		e.uint(r.run.mask)
		put(e, runFields, r.run.mask, &r.run.to)
	}
	e.uint(uint64(len(r.nodes)))
	next := 0
	for k := range r.nodes {
		p := &r.nodes[k]
		e.uint(uint64(p.node - next))
		next = p.node + 1
		e.uint(p.mask)
		put(e, nodeFields, p.mask, p.to)
		e.uint(uint64(len(p.attempts)))
		for j := range p.attempts {
			a := &p.attempts[j]
			e.int(int64(a.to.call))
			e.uint(uint64(a.mask))
			put(e, attemptFields, uint64(a.mask), &a.to)
		}
	}
	return nil
}

// put writes the fields in mask.
func put[T any](e *encoder, fields []field[T], mask uint64, v *T) {
	for ; mask != 0; mask &= mask - 1 {
		fields[bits.TrailingZeros64(mask)].put(e, v)
	}
}

// get reads the fields in mask.
func get[T any](d *decoder, fields []field[T], mask uint64, v *T) {
	for ; mask != 0; mask &= mask - 1 {
		fields[bits.TrailingZeros64(mask)].get(d, v)
	}
}

func (d *decoder) record() Record {
	r := Record{at: instant(d.uint())}
	d.at = r.at
	r.event = d.event()
	if mask := d.mask(len(runFields)); mask != 0 {
		r.run = &runPatch{mask: mask, to: run{head: &noHead, trouble: &noTrouble}}
		if mask&headBits != 0 {
			r.run.to.head = new(head)
		}
		if mask&troubleBits != 0 {
			r.run.to.trouble = new(trouble)
		}
		d.runFields(mask, &r.run.to)
	}
	next := 0
	count := d.count()
	if count > 0 {
		r.nodes = make([]nodePatch, 0, min(count, 64))
	}
	var to []node
	for left := count; left > 0; left-- {
		p := nodePatch{node: d.nodeNumber(&next)}
		if d.err != nil {
			break
		}
		if len(to) == 0 { // no more at once than the bytes left can fill
			to = make([]node, min(left, 64))
		}
		p.to, to = &to[0], to[1:]
		p.to.more = &noMore
		if p.mask = d.mask(len(nodeFields)); p.mask&moreBits != 0 {
			p.to.more = new(more)
		}
		get(d, nodeFields, p.mask, p.to)
		for n := d.count(); n > 0; n-- {
			if p.attempts == nil {
				p.attempts = make([]attemptPatch, 0, min(n, 16))
			}
			a := attemptPatch{to: attempt{call: int32(d.index())}}
			a.mask = uint16(d.mask(len(attemptFields)))
			get(d, attemptFields, uint64(a.mask), &a.to)
			p.attempts = append(p.attempts, a)
		}
		r.nodes = append(r.nodes, p)
	}
	return r
}

// runFields reads the run's fields in mask.
func (d *decoder) runFields(mask uint64, to *run) {
	get(d, runFields, mask, to)
	if to.steps < 0 || to.steps > maxSteps {
		d.fail()
	}
}

// nodeNumber reads the number of the next node: never lower than next.
func (d *decoder) nodeNumber(next *int) int {
	i := *next + d.small(int64(d.uint()))
	if *next = i + 1; *next > maxNodes {
		d.fail()
	}
	return i
}

