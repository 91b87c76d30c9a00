package machine

import (
	"encoding/binary"
	"errors"
	"fmt"
	"math"
	"math/bits"
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
	return AppendRecords(make([]byte, 0, 256), records)
}

// AppendRecords appends to b what EncodeRecords returns. After an error b is as
// long as before.
func AppendRecords(b []byte, records []Record) ([]byte, error) {
	e := encoder{b: b}
	err := e.records(records)
	if err != nil {
		return b, err
	}
	return e.b, nil
}

// AppendRecords is the package's AppendRecords.
func (t *Scratch) AppendRecords(b []byte, records []Record) ([]byte, error) {
	e := &t.encoder
	e.b = b
	err := e.records(records)
	data := e.b
	if e.b = nil; err != nil {
		return b, err
	}
	return data, nil
}

// records writes what EncodeRecords returns.
func (e *encoder) records(records []Record) error {
	e.uint(format)
	e.uint(uint64(len(records)))
	for k := range records {
		first := len(e.b)
		e.strings, e.docs, e.named, e.valued = e.strings[:0], e.docs[:0], nil, nil
		if err := e.record(&records[k]); err != nil {
			return err
		}
		e.b = precede(e.b, first)
	}
	return nil
}

// precede puts the length of what begins at first before it.
func precede(b []byte, first int) []byte {
	size := len(b) - first
	var length [binary.MaxVarintLen64]byte
	n := binary.PutUvarint(length[:], uint64(size))
	b = append(b, length[:n]...)
	copy(b[first+n:], b[first:first+size])
	copy(b[first:], length[:n])
	return b
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
	strings []part         // where strings of the record stand, in order
	named   map[string]int // the same, of many
	docs    []part         // where inline values stand, with their tags
	valued  map[string]int // the same, of many
}

// A part is where some of the encoder's bytes stand.
type part struct{ from, to int }

// manyParts is from how many on they are looked up in a map.
const manyParts = 24

// said returns the number of an earlier string that is the same.
func (e *encoder) said(text string) (int, bool) {
	if e.named != nil {
		k, ok := e.named[text]
		return k, ok
	}
	for k, s := range e.strings {
		if s.to-s.from == len(text) && string(e.b[s.from:s.to]) == text {
			return k, true
		}
	}
	return 0, false
}

// note adds a part to a list, and to the map of a long one.
func (e *encoder) note(list []part, many map[string]int, s part) ([]part, map[string]int) {
	list = append(list, s)
	switch {
	case many != nil:
		many[string(e.b[s.from:s.to])] = len(list) - 1
	case len(list) > manyParts:
		many = make(map[string]int, 2*manyParts)
		for k, s := range list {
			many[string(e.b[s.from:s.to])] = k
		}
	}
	return list, many
}

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
	if k, ok := e.said(s); ok {
		e.uint(uint64(k)<<1 | 1)
		return
	}
	e.uint(uint64(len(s)) << 1)
	e.b = append(e.b, s...)
	e.strings, e.named = e.note(e.strings, e.named, part{len(e.b) - len(s), len(e.b)})
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
	from := len(e.b)
	tag := uint64(valuePlain)
	if len(marks)+len(secrets) > 0 {
		tag = valueMarked
	}
	e.uint(tag)
	e.bytes(v.JSON())
	if tag == valueMarked {
		e.uint(uint64(len(marks)))
		for _, m := range marks {
			e.bytes([]byte(m))
		}
		e.uint(uint64(len(secrets)))
		for _, s := range secrets {
			e.bytes([]byte(s.Path))
			e.uint(uint64(len(s.Parts)))
			for _, p := range s.Parts {
				e.bytes([]byte(p.Text))
				e.bytes([]byte(p.Ref))
			}
		}
	}
	if k, ok := e.same(from); ok {
		e.b = e.b[:from]
		e.uint(valueSame)
		e.uint(uint64(k))
		return
	}
	e.docs, e.valued = e.note(e.docs, e.valued, part{from, len(e.b)})
}

// same returns the number of an earlier value that reads as what stands from
// here to the end.
func (e *encoder) same(from int) (int, bool) {
	text := e.b[from:]
	if e.valued != nil {
		k, ok := e.valued[string(text)]
		return k, ok
	}
	for k, s := range e.docs {
		if s.to-s.from == len(text) && string(e.b[s.from:s.to]) == string(text) {
			return k, true
		}
	}
	return 0, false
}

// A decoder reads from b; after a failure everything reads as zero.
type decoder struct {
	format  uint64
	b       []byte
	err     error
	at      instant
	strings []string
	values  []dsl.Value
	pool    *pool
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
	s := d.pool.string(d.take(n >> 1))
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
		return held{from: origin{kind: kind, node: int32(d.small(int64(d.uint())))}}
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
