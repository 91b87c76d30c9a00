package machine

import (
	"encoding/binary"
	"errors"
	"fmt"
	"math"
	"time"

	"github.com/saga-engine/engine/dsl"
)

// The journal's bytes: a format number, the number of records, then each
// record as its length, its time, its event, the changed fields of the run and
// those of each changed node. Numbers are varints, times are relative to the
// record's, a string or value that occurs twice in a record is written once,
// and a value the run has already is a reference.

// format is the number of the present format. A reader refuses higher ones and
// reads lower ones: 2 added who is to be answered (Ask), AttemptUnknown's
// RetryAfter, and tells a heartbeat from an empty checkpoint.
const format = 2

// maxSteps is more than a definition of the permitted size can hold.
const maxSteps = 1 << 16

var (
	// ErrFormat says that records were written by a newer engine.
	ErrFormat = errors.New("machine: records of a newer format")
	// ErrCorrupt says that bytes are not records.
	ErrCorrupt = errors.New("machine: damaged records")
)

// EncodeRecords returns the journal's bytes for records of one run, in order.
// It returns an error only for an event of a type it does not know.
func EncodeRecords(records []Record) ([]byte, error) {
	e := &encoder{}
	e.uint(format)
	e.uint(uint64(len(records)))
	for _, r := range records {
		body := &encoder{}
		if err := body.record(r); err != nil {
			return nil, err
		}
		e.uint(uint64(len(body.b)))
		e.b = append(e.b, body.b...)
	}
	return e.b, nil
}

// DecodeRecords reads what EncodeRecords wrote. The records share memory with
// data. Returns ErrFormat for a newer format, and ErrCorrupt for anything else
// it cannot read.
func DecodeRecords(data []byte) ([]Record, error) {
	d := &decoder{b: data}
	if err := d.header(); err != nil {
		return nil, err
	}
	n := d.count()
	records := make([]Record, 0, min(n, 1024))
	for range n {
		body := &decoder{b: d.take(d.uint()), format: d.format}
		r := body.record()
		if body.err != nil || len(body.b) > 0 || d.err != nil {
			return nil, fmt.Errorf("%w: record %d", ErrCorrupt, len(records))
		}
		records = append(records, r)
	}
	if d.err != nil || len(d.b) > 0 {
		return nil, fmt.Errorf("%w: length", ErrCorrupt)
	}
	return records, nil
}

// EncodeEvent returns the bytes of an event that is on its way to a run.
func EncodeEvent(ev Event) ([]byte, error) {
	e := &encoder{}
	e.uint(format)
	if err := e.event(ev); err != nil {
		return nil, err
	}
	return e.b, nil
}

// DecodeEvent reads what EncodeEvent wrote. Returns ErrFormat and ErrCorrupt as
// DecodeRecords does.
func DecodeEvent(data []byte) (Event, error) {
	d := &decoder{b: data}
	if err := d.header(); err != nil {
		return nil, err
	}
	ev := d.event()
	if d.err != nil || len(d.b) > 0 {
		return nil, fmt.Errorf("%w: event", ErrCorrupt)
	}
	return ev, nil
}

// header reads the format number.
func (d *decoder) header() error {
	d.format = d.uint()
	switch {
	case d.err == nil && d.format > format:
		return fmt.Errorf("%w: %d, this engine reads up to %d", ErrFormat, d.format, format)
	case d.err != nil || d.format == 0:
		return fmt.Errorf("%w: format", ErrCorrupt)
	}
	return nil
}

type encoder struct {
	b       []byte
	at      instant
	strings map[string]int
	values  map[string]int // JSON and marks of inline values
}

func (e *encoder) record(r Record) error {
	e.at = r.at
	e.uint(uint64(r.at))
	if err := e.event(r.event); err != nil {
		return err
	}
	if r.run == nil {
		e.uint(0)
	} else {
		e.uint(r.run.mask)
		for i := range runFields {
			if r.run.mask&(1<<i) != 0 {
				runFields[i].put(e, &r.run.to)
			}
		}
	}
	e.uint(uint64(len(r.nodes)))
	next := 0
	for k := range r.nodes {
		p := &r.nodes[k]
		e.uint(uint64(p.node - next))
		next = p.node + 1
		e.uint(p.mask)
		for i := range nodeFields {
			if p.mask&(1<<i) != 0 {
				nodeFields[i].put(e, &p.to)
			}
		}
		e.uint(uint64(len(p.attempts)))
		for j := range p.attempts {
			a := &p.attempts[j]
			e.int(int64(a.to.call))
			e.uint(uint64(a.mask))
			for i := range attemptFields {
				if a.mask&(1<<i) != 0 {
					attemptFields[i].put(e, &a.to)
				}
			}
		}
	}
	return nil
}

func (d *decoder) record() Record {
	r := Record{at: instant(d.uint())}
	d.at = r.at
	r.event = d.event()
	if mask := d.mask(len(runFields)); mask != 0 {
		r.run = &runPatch{mask: mask}
		for i := range runFields {
			if mask&(1<<i) != 0 {
				runFields[i].get(d, &r.run.to)
			}
		}
		if r.run.to.steps < 0 || r.run.to.steps > maxSteps {
			d.fail()
		}
	}
	next := 0
	count := d.count()
	if count > 0 {
		r.nodes = make([]nodePatch, 0, min(count, 64)) // a patch is large: growing is dear
	}
	for range count {
		p := nodePatch{node: next + d.small(int64(d.uint()))}
		if next = p.node + 1; next > maxNodes {
			d.fail()
		}
		if d.err != nil {
			break
		}
		p.mask = d.mask(len(nodeFields))
		for i := range nodeFields {
			if p.mask&(1<<i) != 0 {
				nodeFields[i].get(d, &p.to)
			}
		}
		for range d.count() {
			a := attemptPatch{to: attempt{call: d.index()}}
			a.mask = uint16(d.mask(len(attemptFields)))
			for i := range attemptFields {
				if a.mask&(1<<i) != 0 {
					attemptFields[i].get(d, &a.to)
				}
			}
			p.attempts = append(p.attempts, a)
		}
		r.nodes = append(r.nodes, p)
	}
	return r
}

func (e *encoder) uint(v uint64) { e.b = binary.AppendUvarint(e.b, v) }
func (e *encoder) int(v int64)   { e.b = binary.AppendVarint(e.b, v) }

func (e *encoder) bool(v bool) {
	if v {
		e.uint(1)
	} else {
		e.uint(0)
	}
}

// instant writes 0 for none, else the distance from the record's time.
func (e *encoder) instant(v instant) {
	if v == 0 {
		e.uint(0)
		return
	}
	d := int64(v - e.at)
	e.uint(uint64(d<<1^d>>63) + 1)
}

func (e *encoder) time(t time.Time) { e.instant(toInstant(t)) }

func (e *encoder) bytes(b []byte) {
	e.uint(uint64(len(b)))
	e.b = append(e.b, b...)
}

// string writes a string, or the number of an equal one earlier in the record.
func (e *encoder) string(s string) {
	if len(s) < 3 {
		e.uint(uint64(len(s)) << 1)
		e.b = append(e.b, s...)
		return
	}
	if k, ok := e.strings[s]; ok {
		e.uint(uint64(k)<<1 | 1)
		return
	}
	if e.strings == nil {
		e.strings = map[string]int{}
	}
	e.strings[s] = len(e.strings)
	e.uint(uint64(len(s)) << 1)
	e.b = append(e.b, s...)
}

// Tags of values.
const (
	valueNull   = 0
	valuePlain  = 1 // document only
	valueMarked = 2 // document, sensitive parts, secrets
	valueSame   = 3 // number of an equal value earlier in the record
	valueOrigin = 4 // plus originKind: a value the run has
)

func (e *encoder) held(h held) {
	switch h.from.kind {
	case originInline:
		e.value(h.v)
	case originVars, originKey:
		e.uint(valueOrigin + uint64(h.from.kind))
	default:
		e.uint(valueOrigin + uint64(h.from.kind))
		e.uint(uint64(h.from.node))
	}
}

func (e *encoder) value(v dsl.Value) {
	marks := v.Sensitive()
	secrets := v.Secrets()
	if v.IsNull() && len(marks)+len(secrets) == 0 {
		e.uint(valueNull)
		return
	}
	var body encoder
	tag := uint64(valuePlain)
	body.bytes(v.JSON())
	if len(marks)+len(secrets) > 0 {
		tag = valueMarked
		body.uint(uint64(len(marks)))
		for _, m := range marks {
			body.bytes([]byte(m))
		}
		body.uint(uint64(len(secrets)))
		for _, s := range secrets {
			body.bytes([]byte(s.Path))
			body.uint(uint64(len(s.Parts)))
			for _, p := range s.Parts {
				body.bytes([]byte(p.Text))
				body.bytes([]byte(p.Ref))
			}
		}
	}
	id := string(append([]byte{byte(tag)}, body.b...))
	if k, ok := e.values[id]; ok {
		e.uint(valueSame)
		e.uint(uint64(k))
		return
	}
	if e.values == nil {
		e.values = map[string]int{}
	}
	e.values[id] = len(e.values)
	e.b = append(e.b, id...)
}

// A decoder reads from b; after a failure everything reads as zero.
type decoder struct {
	format  uint64
	b       []byte
	err     error
	at      instant
	strings []string
	values  []dsl.Value
}

func (d *decoder) fail() {
	d.err = ErrCorrupt
	d.b = nil
}

func (d *decoder) uint() uint64 {
	v, n := binary.Uvarint(d.b)
	if n <= 0 {
		d.fail()
		return 0
	}
	d.b = d.b[n:]
	return v
}

func (d *decoder) int() int64 {
	v, n := binary.Varint(d.b)
	if n <= 0 {
		d.fail()
		return 0
	}
	d.b = d.b[n:]
	return v
}

// index reads a number that was written by int or uint and may serve as an
// index: never negative, never absurd.
func (d *decoder) index() int {
	return d.small(d.int())
}

func (d *decoder) small(v int64) int {
	if v < 0 || v > math.MaxInt32 {
		d.fail()
		return 0
	}
	return int(v)
}

func (d *decoder) bool() bool { return d.uint() != 0 }

// count reads how many items follow; each takes a byte at least.
func (d *decoder) count() int {
	n := d.uint()
	if n > uint64(len(d.b)) {
		d.fail()
		return 0
	}
	return int(n)
}

// mask reads a set of fields, all of which must be known.
func (d *decoder) mask(fields int) uint64 {
	m := d.uint()
	if fields < 64 && m>>fields != 0 {
		d.fail()
		return 0
	}
	return m
}

func (d *decoder) instant() instant {
	u := d.uint()
	if u == 0 {
		return 0
	}
	u--
	return d.at + instant(int64(u>>1)^-int64(u&1))
}

func (d *decoder) time() time.Time { return d.instant().time() }

func (d *decoder) take(n uint64) []byte {
	if n > uint64(len(d.b)) {
		d.fail()
		return nil
	}
	b := d.b[:n:n]
	d.b = d.b[n:]
	return b
}

func (d *decoder) bytes() []byte { return d.take(d.uint()) }

func (d *decoder) string() string {
	n := d.uint()
	if n&1 == 1 {
		if n >>= 1; n < uint64(len(d.strings)) {
			return d.strings[n]
		}
		d.fail()
		return ""
	}
	s := string(d.take(n >> 1))
	if len(s) >= 3 {
		d.strings = append(d.strings, s)
	}
	return s
}

func (d *decoder) held() held {
	tag := d.uint()
	if tag < valueOrigin {
		return held{v: d.valueOf(tag)}
	}
	kind := originKind(tag - valueOrigin)
	switch kind {
	case originVars, originKey:
		return held{from: origin{kind: kind}}
	case originOutput, originInput:
		return held{from: origin{kind: kind, node: d.small(int64(d.uint()))}}
	}
	d.fail()
	return held{}
}

func (d *decoder) value() dsl.Value { return d.valueOf(d.uint()) }

func (d *decoder) valueOf(tag uint64) dsl.Value {
	switch tag {
	case valueNull:
		return dsl.Value{}
	case valueSame:
		k := d.uint()
		if k >= uint64(len(d.values)) {
			d.fail()
			return dsl.Value{}
		}
		return d.values[k]
	case valuePlain:
		v := dsl.NewValue(d.bytes(), nil, nil)
		d.values = append(d.values, v)
		return v
	case valueMarked:
		doc := d.bytes()
		var marks []string
		for range d.count() {
			marks = append(marks, string(d.bytes()))
		}
		var secrets []dsl.Secret
		for range d.count() {
			s := dsl.Secret{Path: string(d.bytes())}
			for range d.count() {
				s.Parts = append(s.Parts, dsl.SecretPart{Text: string(d.bytes()), Ref: string(d.bytes())})
			}
			secrets = append(secrets, s)
		}
		v := dsl.NewValue(doc, marks, secrets)
		d.values = append(d.values, v)
		return v
	}
	d.fail()
	return dsl.Value{}
}
