package wire

import (
	"encoding/binary"
	"errors"
	"fmt"
	"math"
	"time"

	"github.com/saga-engine/engine/dsl"
	"github.com/saga-engine/engine/engine/internal/model"
)

// Format is the number of the present format of the journal's bytes. A reader accepts this number
// and lower ones. Format 2 added two things: the number of the message that an event answers
// (Ask), and AttemptUnknown.RetryAfter. Since format 2, a heartbeat differs from an empty
// checkpoint. Format 3 writes the same data in fewer bytes.
const Format = 3

var (
	// ErrFormat says that records were written by a newer engine.
	ErrFormat = errors.New("journal: records of a newer format")
	// ErrCorrupt says that bytes are not records.
	ErrCorrupt = errors.New("journal: damaged records")
)

type encoder struct {
	b       []byte
	at      model.Instant
	strings []byteRange // ranges of b: the strings of the record that were written in full, in order
	// named maps a text to its index in the field `strings`. It is nil while that list is short.
	named map[string]int
	docs  []byteRange // ranges of b: the values of the record that were written in full, each with its tag
	// valued maps the bytes of a value to the value's index in the field `docs`. It is nil while
	// that list is short.
	valued  map[string]int
	general bool // true: use no templates, as for an image and in tests
	full    bool // true: write a whole state (model.Image), so all values and lists are complete
	bare    bool // true: write values without references (SameState)
}

// A byteRange is a range of the encoder's bytes.
type byteRange struct{ from, to int }

// manyRanges is the largest length of a list of ranges that is searched without a map.
const manyRanges = 24

// earlier looks for the given text among the earlier strings of the record. It returns the index of
// this string in e.strings, and whether the string was found.
func (e *encoder) earlier(text string) (int, bool) {
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

// note appends the range `s` to a list, and returns the longer list and a map. A long list, with
// more than manyRanges ranges, has a map from the bytes of each range to its index, which makes a
// search fast. The parameter `many` is the map of the list so far; nil = the list has no map yet.
// The returned map may be nil, too.
func (e *encoder) note(list []byteRange, many map[string]int, s byteRange) ([]byteRange, map[string]int) {
	list = append(list, s)
	switch {
	case many != nil:
		many[string(e.b[s.from:s.to])] = len(list) - 1
	case len(list) > manyRanges:
		many = make(map[string]int, 2*manyRanges)
		for k, s := range list {
			many[string(e.b[s.from:s.to])] = k
		}
	}
	return list, many
}

func (e *encoder) uint(v uint64) { e.b = binary.AppendUvarint(e.b, v) }

func (e *encoder) int(v int64) { e.b = binary.AppendVarint(e.b, v) }

func (e *encoder) bool(v bool) {
	if v {
		e.uint(1)
	} else {
		e.uint(0)
	}
}

// wholeSecond is the number of microseconds in a second.
const wholeSecond = 1_000_000

// instant writes a time as its distance from the record's time; 0 = no time. It writes the
// distance in seconds if that is exact, and otherwise in microseconds. Most limits that people
// set are whole seconds.
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

// string writes a string, or the number of an equal string that the record contains already.
func (e *encoder) string(s string) {
	if len(s) < 3 {
		e.uint(uint64(len(s)) << 1)
		e.b = append(e.b, s...)
		return
	}
	if k, ok := e.earlier(s); ok {
		e.uint(uint64(k)<<1 | 1)
		return
	}
	e.uint(uint64(len(s)) << 1)
	e.b = append(e.b, s...)
	e.strings, e.named = e.note(e.strings, e.named, byteRange{len(e.b) - len(s), len(e.b)})
}

// A decoder reads the bytes in its field `b`. After a failure the field `err` is set, and every
// method that reads returns the zero value.
type decoder struct {
	format  uint64
	b       []byte
	err     error
	at      model.Instant
	strings []string
	values  []dsl.Value
	pool    *pool
	full    bool // true: read a whole state; see encoder.full
}

func (d *decoder) fail() {
	d.err = ErrCorrupt
	d.b = nil
}

// header reads the format number into d.format. It returns an error if this engine cannot read
// that format.
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

// body returns the bytes of the next record. The parameter `n` is the number of records in the
// data. If n is 1, the record has no length in front of it (since format 3).
func (d *decoder) body(n int) []byte {
	if n == 1 && d.format >= 3 {
		return d.take(uint64(len(d.b)))
	}
	return d.take(d.uint())
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

// index reads a signed number that is used as an index. It fails if the number is negative
// or too large.
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

// mask reads a set of fields, which is stored as bits. The parameter `fields` is the number of
// known fields. mask fails if the set contains an unknown field.
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

// A pool holds strings that occur often, such as names and codes, so that equal strings use memory
// only once. The content of a string determines its index in the pool. A new string replaces the
// string that has the same index.
type pool [64]string

// longPooled is the largest length, in bytes, of a string in a pool.
const longPooled = 40

// string returns a string with the bytes b. If the pool has an equal string, it returns that
// string. Otherwise it adds the new string to the pool, unless the string is too long.
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
