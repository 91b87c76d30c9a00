package wire

import (
	"fmt"

	"github.com/saga-engine/engine/engine/internal/model"
	"github.com/saga-engine/engine/engine/machine"
)

// A Reader folds journals into states, in memory that it uses again and again. The zero
// Reader is ready to use, by one goroutine at a time.
type Reader struct {
	d    decoder
	pool pool
	load machine.Loader
}

// Fold reads what Encode wrote and applies the records in order: what Decode and
// State.Apply do, at a fraction of the cost, since no record is made. each is called
// before a record is applied; what it gets is good until it returns. Values share memory
// with data. Returns ErrFormat and ErrCorrupt as Decode does; s is then of no more use.
func (t *Reader) Fold(s *machine.State, data []byte, each func(*machine.Change)) error {
	d := decoder{b: data, pool: &t.pool}
	if err := d.header(); err != nil {
		return err
	}
	n := d.count()
	for k := range n {
		rest := d.body(n)
		if d.err == nil {
			body := &t.d
			*body = decoder{b: rest, format: d.format, strings: body.strings[:0], values: body.values[:0], pool: d.pool}
			if t.record(s); len(body.b) > 0 {
				body.fail()
			}
			d.err = body.err
		}
		if d.err != nil {
			return fmt.Errorf("%w: record %d", ErrCorrupt, k)
		}
		each(t.load.Change())
		t.load.Apply()
	}
	if d.err != nil || len(d.b) > 0 {
		return fmt.Errorf("%w: length", ErrCorrupt)
	}
	return nil
}

// record reads a record. After a failure, of which the decoder knows, it must not be
// applied.
func (t *Reader) record(s *machine.State) {
	d := &t.d
	d.at = model.Instant(d.uint())
	event := d.event()
	t.load.Begin(s, d.at, event)
	if kind, mask := d.run(event); mask != 0 {
		d.runFields(kind, mask, t.load.Run(mask), event)
	}
	next := 0
	for range d.count() {
		h := d.node(&next, event)
		if d.err != nil {
			return
		}
		n := t.load.Node(h.node, h.mask)
		d.nodeFields(&h, n)
		for range d.attempts(&h) {
			call, mask := d.attempt(&h)
			d.attemptFields(&h, mask, n.Attempt(call))
		}
	}
}
