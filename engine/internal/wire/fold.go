package wire

import (
	"fmt"

	"github.com/saga-engine/engine/engine/internal/model"
	"github.com/saga-engine/engine/engine/machine"
)

// A Reader reads the bytes of a journal and applies its records to a state. It reuses its
// memory. The zero Reader is ready to use, by one goroutine at a time.
type Reader struct {
	d    decoder
	pool pool
	load machine.Loader
}

// Fold reads the bytes that Encode returned and applies the records in order. The state is the same
// as after Decode and State.Apply, but Fold is much faster, because it makes no machine.Record.
// Before Fold applies a record, it passes the change that the record makes to the function in the
// parameter `each`. This function may use the Change only until it returns. Values in the state
// share memory with the parameter `data`. Fold returns the errors of Decode. After an error, the
// state must not be used.
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

// record reads a record into t.load, but does not apply it. If the decoder t.d has failed then, the
// caller must not apply the record.
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
