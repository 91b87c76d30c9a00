package wire

import (
	"bytes"
	"fmt"
	"math/bits"

	"github.com/saga-engine/engine/engine/internal/model"
	"github.com/saga-engine/engine/engine/machine"
)

// The functions below show in which form a record is written. Only tests of the machine and of
// the journal use them.

// Same compares the persisted parts of two records. It returns nil if they are equal; otherwise an
// error that names the first difference. Where a value is written as a reference, Same compares the
// references, and not the values: a record that was read does not have these values.
func Same(a, b *machine.Record) error {
	x, y := a.Delta(), b.Delta()
	var events [2]encoder
	for k, r := range []*machine.Record{a, b} {
		events[k].at = r.Delta().At
		if err := events[k].event(r.Event()); err != nil {
			return err
		}
	}
	if x.At != y.At || !bytes.Equal(events[0].b, events[1].b) {
		return fmt.Errorf("%+v at %d became %+v at %d", a.Event(), x.At, b.Event(), y.At)
	}
	if (x.Run == nil) != (y.Run == nil) || len(x.Nodes) != len(y.Nodes) {
		return fmt.Errorf("%d nodes and run %v became %d and %v", len(x.Nodes), x.Run != nil, len(y.Nodes), y.Run != nil)
	}
	if x.Run != nil {
		if err := samePatch("run", runCodec, x.At, x.Run.Mask, y.Run.Mask, &x.Run.To, &y.Run.To); err != nil {
			return err
		}
	}
	for k := range x.Nodes {
		if err := sameNode(&x.Nodes[k], &y.Nodes[k], x.At); err != nil {
			return err
		}
	}
	return nil
}

func sameNode(p, q *model.NodePatch, at model.Instant) error {
	if p.Node != q.Node || len(p.Attempts) != len(q.Attempts) {
		return fmt.Errorf("node %d with %d attempts became %d with %d", p.Node, len(p.Attempts), q.Node, len(q.Attempts))
	}
	if err := samePatch("node", nodeCodec, at, p.Mask, q.Mask, p.To, q.To); err != nil {
		return err
	}
	for j := range p.Attempts {
		v, w := &p.Attempts[j], &q.Attempts[j]
		if v.To.Call != w.To.Call {
			return fmt.Errorf("call %d became %d", v.To.Call, w.To.Call)
		}
		if err := samePatch("attempt", attemptCodec, at, uint64(v.Mask), uint64(w.Mask), &v.To, &w.To); err != nil {
			return err
		}
	}
	return nil
}

// samePatch compares two patches. The sets `m` and `n` contain the fields that the patches change;
// `a` and `b` hold the new values. The error names the first difference; nil = there is none.
func samePatch[T any](what string, fields []codec[T], at model.Instant, m, n uint64, a, b *T) error {
	if m != n {
		return fmt.Errorf("%s: fields %b became %b", what, m, n)
	}
	for ; m != 0; m &= m - 1 {
		x, y := &encoder{at: at}, &encoder{at: at}
		i := bits.TrailingZeros64(m)
		fields[i].put(x, a)
		fields[i].put(y, b)
		if !bytes.Equal(x.b, y.b) {
			return fmt.Errorf("%s field %d: %x became %x", what, i, x.b, y.b)
		}
	}
	return nil
}

// EncodeGeneral does the same as Encode, but uses no templates. Decode reads the result as
// well.
func EncodeGeneral(records []machine.Record) ([]byte, error) {
	e := encoder{general: true}
	if err := e.records(records); err != nil {
		return nil, err
	}
	return e.b, nil
}

// A Form says how a patch is written. Template is the number of the patch's template; 0 = none.
// Exact is true if the patch changes exactly the fields that usually change with this template.
type Form struct {
	Template int
	Exact    bool
}

// Forms returns how the patches of the record r are written: a Form for the patch of the run, and
// one Form for each patch of a node, in order. The result `run` is zero if r does not change the
// run.
func Forms(r *machine.Record) (run Form, nodes []Form) {
	d, event := r.Delta(), r.Event()
	if d.Run != nil {
		k := runTemplateOf(d.Run, d.At, event)
		run = Form{int(k), d.Run.Mask == k.fields(event)}
	}
	for i := range d.Nodes {
		p := &d.Nodes[i]
		k := templateOf(p, d.At, event)
		exact := k != noTemplate && p.Mask == k.fields(event) && uint64(p.Attempts[0].Mask) == templates[k].attempt
		nodes = append(nodes, Form{int(k), exact})
	}
	return run, nodes
}

// ReadField decodes the parameter `data`, and sets the field with number i in v, which is a run, a
// node or an attempt. It reports whether `data` is a valid value of that field. Times in `data` are
// distances from the parameter `at`, which is the time of the record.
func ReadField(v any, i int, data []byte, at model.Instant) bool {
	d := &decoder{b: data, at: at, format: Format}
	switch v := v.(type) {
	case *model.Run:
		runCodec[i].get(d, v)
	case *model.Node:
		nodeCodec[i].get(d, v)
	case *model.Attempt:
		attemptCodec[i].get(d, v)
	}
	return d.err == nil
}
