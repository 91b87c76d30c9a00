package machine

import (
	"bytes"
	"fmt"
	"reflect"
	"slices"

	"github.com/saga-engine/engine/dsl"
	"github.com/saga-engine/engine/engine/internal/model"
)

// snapshot is everything the state knows, byte for byte: the persisted fields
// with the values behind references, and what the indexes answer.
func snapshot(s *State) []byte {
	e := &encoder{at: 1}
	e.uint(uint64(s.run.Records))
	e.int(s.checkpoints)
	e.int(s.values.bytes)
	e.instant(s.run.Last)
	for _, f := range runCodec {
		f.put(e, &s.run)
	}
	for _, o := range s.run.Outputs {
		e.value(o.Value.V)
	}
	for i, n := range s.nodes {
		e.uint(uint64(i))
		for _, f := range nodeCodec {
			f.put(e, n)
		}
		for _, h := range model.NodeValues(n) {
			e.value(h.V)
		}
		for k := range n.Attempts {
			e.int(int64(n.Attempts[k].Call))
			for _, f := range attemptCodec {
				f.put(e, &n.Attempts[k])
			}
		}
	}
	e.instant(s.nextDue())
	for _, h := range s.Held() {
		e.string(h.Agent)
		e.int(int64(h.Steps))
		e.time(h.Until)
	}
	return e.b
}

// decideTwice decides and checks on the way that deciding changes nothing and
// is deterministic: promise 1.
func decideTwice(wf *dsl.Workflow, s *State, in Input) (Record, error) {
	before := snapshot(s)
	rec := Decide(wf, s, in)
	scratch := in.Scratch
	if scratch == nil {
		scratch = &Scratch{}
	}
	in.Scratch = scratch
	Decide(wf, s, in)
	again := Decide(wf, s, in) // in memory that was used before
	if !bytes.Equal(before, snapshot(s)) {
		return rec, fmt.Errorf("promise 1: Decide(%T) changed its input", in.Event)
	}
	a, err := EncodeRecords([]Record{rec})
	if err != nil {
		return rec, err
	}
	b, err := EncodeRecords([]Record{again})
	if err != nil {
		return rec, err
	}
	if !bytes.Equal(a, b) || !slices.Equal(tellAll(rec), tellAll(again)) {
		return rec, fmt.Errorf("promise 1: Decide(%T) decided differently the second time", in.Event)
	}
	return rec, nil
}

// tellAll writes a record's commands out, values included.
func tellAll(r Record) []string {
	var told []string
	for _, c := range r.Commands() {
		if inv, ok := c.(Invoke); ok {
			input := string(inv.Input.JSON())
			inv.Input = dsl.Value{}
			if inv.Checkpoint != nil {
				input += fmt.Sprintf(" %+v", *inv.Checkpoint)
				inv.Checkpoint = nil
			}
			told = append(told, fmt.Sprintf("%+v %s", inv, input))
			continue
		}
		told = append(told, fmt.Sprintf("%+v", c))
	}
	return told
}

// A journal is what a store would hold: bytes only.
type journal struct{ rows [][]byte }

func (j *journal) append(rec Record) error {
	row, err := EncodeRecords([]Record{rec})
	if err != nil {
		return err
	}
	back, err := DecodeRecords(row)
	if err != nil {
		return err
	}
	if err := sameRecord(&rec, &back[0]); err != nil {
		return fmt.Errorf("promise 11: %w", err)
	}
	j.rows = append(j.rows, row)
	return nil
}

// fold reads the journal back, with and without making records of it, which must
// come to the same: promise 10.
func (j *journal) fold(wf *dsl.Workflow, scratch *Scratch) (*State, error) {
	s, plain := NewState(), NewState()
	for _, row := range j.rows {
		facts := 0
		records, err := DecodeRecords(slices.Clone(row))
		if err != nil {
			return nil, err
		}
		var told []Event
		for _, r := range records {
			facts += len(r.Facts(wf, s))
			s.Apply(r)
		}
		counted, err := scratch.Fold(plain, wf, row, func(e Event) { told = append(told, e) })
		if err != nil {
			return nil, err
		}
		if counted != facts {
			return nil, fmt.Errorf("%d facts were counted, %d told", counted, facts)
		}
		for k, r := range records {
			if k >= len(told) || !reflect.DeepEqual(told[k], r.Event()) {
				return nil, fmt.Errorf("event %d was told as %+v, want %+v", k, told, r.Event())
			}
		}
	}
	if err := sameFold(s, plain); err != nil {
		return nil, err
	}
	return s, nil
}

func foldRow(s *State, row []byte) error {
	records, err := DecodeRecords(slices.Clone(row))
	if err != nil {
		return err
	}
	for _, r := range records {
		s.Apply(r)
	}
	return nil
}

// sameFold compares two folds of the same records: promise 10.
func sameFold(a, b *State) error {
	if x, y := snapshot(a), snapshot(b); !bytes.Equal(x, y) {
		return fmt.Errorf("promise 10: two folds differ (%d and %d bytes)", len(x), len(y))
	}
	return nil
}
