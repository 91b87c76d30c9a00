package wire

import (
	"encoding/binary"
	"errors"
	"fmt"
	"math"
	"time"

	"github.com/saga-engine/engine/dsl"
	"github.com/saga-engine/engine/engine/internal/model"
	"github.com/saga-engine/engine/engine/machine"
)

// Format is the number of the present format of the journal's bytes. A reader reads lower
// numbers and refuses higher ones. Format 2 added the message that is answered (Ask) and
// AttemptUnknown's RetryAfter, and it distinguishes a heartbeat from an empty checkpoint.
// Format 3 writes the same data in fewer bytes.
const Format = 3

var (
	// ErrFormat says that records were written by a newer engine.
	ErrFormat = errors.New("machine: records of a newer format")
	// ErrCorrupt says that bytes are not records.
	ErrCorrupt = errors.New("machine: damaged records")
)

// Encode returns the journal's bytes for records of one run, in order. It returns an error
// only if an event has an unknown type.
func Encode(records []machine.Record) ([]byte, error) {
	var e Encoder
	data, err := e.Append(make([]byte, 0, 256), records)
	if err != nil {
		return nil, err
	}
	return data, nil
}

// An Encoder writes records into memory that it reuses. The zero Encoder is ready to use,
// by one goroutine at a time.
type Encoder struct{ e encoder }

// Append appends the result of Encode to b. After an error b has its former length.
func (t *Encoder) Append(b []byte, records []machine.Record) ([]byte, error) {
	e := &t.e
	e.b = b
	err := e.records(records)
	data := e.b
	if e.b = nil; err != nil {
		return b, err
	}
	return data, nil
}

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

// precede inserts, at position first, the length of the bytes that follow it.
func precede(b []byte, first int) []byte {
	size := len(b) - first
	var length [binary.MaxVarintLen64]byte
	n := binary.PutUvarint(length[:], uint64(size))
	b = append(b, length[:n]...)
	copy(b[first+n:], b[first:first+size])
	copy(b[first:], length[:n])
	return b
}

// Decode reads the bytes that Encode returned. The records share memory with data. Decode
// returns ErrFormat for a newer format, and ErrCorrupt for any other bytes that it cannot
// read.
func Decode(data []byte) ([]machine.Record, error) {
	d := &decoder{b: data}
	if err := d.header(); err != nil {
		return nil, err
	}
	n := d.count()
	records := make([]machine.Record, 0, min(n, 1024))
	for range n {
		body := &decoder{b: d.body(n), format: d.format}
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

// EncodeEvent returns the bytes of an event that is on the way to a run.
func EncodeEvent(ev machine.Event) ([]byte, error) {
	e := &encoder{}
	e.uint(Format)
	if err := e.event(ev); err != nil {
		return nil, err
	}
	return e.b, nil
}

// DecodeEvent reads the bytes that EncodeEvent returned. It returns the errors of Decode.
func DecodeEvent(data []byte) (machine.Event, error) {
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
	case d.err == nil && d.format > Format:
		return fmt.Errorf("%w: %d, this engine reads up to %d", ErrFormat, d.format, Format)
	case d.err != nil || d.format == 0:
		return fmt.Errorf("%w: format", ErrCorrupt)
	}
	return nil
}

// body returns the bytes of the next record. n is the number of records in the data.
func (d *decoder) body(n int) []byte {
	if n == 1 && d.format >= 3 {
		return d.take(uint64(len(d.b)))
	}
	return d.take(d.uint())
}

type encoder struct {
	b       []byte
	at      model.Instant
	strings []part         // places in b of the strings of the record, in order
	named   map[string]int // the same places by string; nil while there are few
	docs    []part         // places in b of the values of the record, each with its tag
	valued  map[string]int // the same places by value; nil while there are few
	general bool           // write no templates; tests compare templates with this form
}

// A part is a range of the encoder's bytes.
type part struct{ from, to int }

// manyParts is the number of parts from which a map is used to look them up.
const manyParts = 24

// said returns the number of an earlier equal string.
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

// note adds a part to the list. If the list is long, it adds the part to the map as well.
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

func (e *encoder) uint(v uint64) { e.b = binary.AppendUvarint(e.b, v) }
func (e *encoder) int(v int64)   { e.b = binary.AppendVarint(e.b, v) }

func (e *encoder) bool(v bool) {
	if v {
		e.uint(1)
	} else {
		e.uint(0)
	}
}

// wholeSecond is the number of microseconds in a second.
const wholeSecond = 1_000_000

// instant writes 0 for no time. Otherwise it writes the distance from the record's time. It
// writes whole seconds if that is exact, which is so for most limits that people set.
func (e *encoder) instant(v model.Instant) {
	if v == 0 {
		e.uint(0)
		return
	}
	d, whole := int64(v-e.at), uint64(0)
	if d%wholeSecond == 0 {
		d, whole = d/wholeSecond, 1
	}
	e.uint((uint64(d<<1^d>>63)<<1 | whole) + 1)
}

func (e *encoder) time(t time.Time) { e.instant(model.ToInstant(t)) }

func (e *encoder) bytes(b []byte) {
	e.uint(uint64(len(b)))
	e.b = append(e.b, b...)
}

// string writes a string, or the number of an equal string earlier in the record.
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

// A decoder reads from b. After a failure every read returns zero.
type decoder struct {
	format  uint64
	b       []byte
	err     error
	at      model.Instant
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

// index reads a number that int or uint wrote and that is used as an index. It fails if the
// number is negative or too large.
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

// count reads the number of items that follow. It fails if the number is larger than the
// number of bytes left, because each item needs at least one byte.
func (d *decoder) count() int {
	n := d.uint()
	if n > uint64(len(d.b)) {
		d.fail()
		return 0
	}
	return int(n)
}

// mask reads a set of fields. It fails if the set has an unknown field.
func (d *decoder) mask(fields int) uint64 {
	m := d.uint()
	if fields < 64 && m>>fields != 0 {
		d.fail()
		return 0
	}
	return m
}

func (d *decoder) instant() model.Instant {
	u := d.uint()
	if u == 0 {
		return 0
	}
	u--
	unit := int64(1)
	if d.format >= 3 {
		if u&1 == 1 {
			unit = wholeSecond
		}
		u >>= 1
	}
	distance := int64(u>>1) ^ -int64(u&1)
	if unit == wholeSecond && (distance > math.MaxInt64/2/wholeSecond || distance < math.MinInt64/2/wholeSecond) {
		d.fail()
		return 0
	}
	return d.at + model.Instant(distance*unit)
}

func (d *decoder) time() time.Time { return d.instant().Time() }

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
