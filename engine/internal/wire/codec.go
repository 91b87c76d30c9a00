package wire

import (
	"fmt"

	"github.com/saga-engine/engine/engine/machine"
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

// An Encoder encodes records. It reuses its memory for the next records. The zero Encoder is ready
// to use, by one goroutine at a time.
type Encoder struct{ e encoder }

// Append encodes records in the same way as Encode, and appends the bytes to b. After an error
// it returns b unchanged.
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

// Decode reads the bytes that Encode returned. The records share memory with the parameter `data`.
// Decode returns ErrFormat for a newer format, and ErrCorrupt for any other bytes that it cannot
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

// EncodeEvent returns the bytes of a single event, such as a message for an inbox.
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
