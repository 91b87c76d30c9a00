package wire

import (
	"fmt"

	"github.com/saga-engine/engine/engine/internal/model"
	"github.com/saga-engine/engine/engine/machine"
)

// A Reader folds journals into states, in memory that it reuses. The zero Reader is ready
// to use, by one goroutine at a time.
type Reader struct {
	d    decoder
	pool pool
	load machine.Loader
}

// Fold reads the bytes that Encode returned and applies the records in order. The result is
// that of Decode and State.Apply, but Fold is much faster, because it makes no records.
// each is called before a record is applied; its argument is valid until it returns. Values
// share memory with data. Fold returns the errors of Decode; after an error s must not be
// used.
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

// record reads a record. If the decoder has failed afterwards, the record must not be
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

// A pool holds strings that occur often: names, codes, persons. It may drop any of them.
type pool [64]string

// longPooled is the length in bytes of the longest strings in a pool.
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
