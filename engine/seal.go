package engine

import (
	"encoding/binary"
	"errors"
	"fmt"
	"time"

	"github.com/saga-engine/engine/engine/machine"
	"github.com/saga-engine/engine/engine/store"
)

// The byte in front of stored data says whether it is sealed. Numbers are
// persisted.
const (
	markPlain  = 0
	markSealed = 1
	// markLone and the format's number: one record that is not sealed, without its
	// time, which is the row's.
	markLone = 16
)

// wrap puts the mark in front of plain and seals it if it is sensitive. A nil
// sealer with sensitive data is a *KeyError.
func wrap(sealer Sealer, where, plain []byte, sensitive bool) ([]byte, error) {
	if !sensitive {
		return append([]byte{markPlain}, plain...), nil
	}
	if sealer == nil {
		return nil, &KeyError{Hint: hintMakeKey}
	}
	sealed, err := sealer.Seal(where, plain)
	if err != nil {
		return nil, fmt.Errorf("seal sensitive data: %w", err)
	}
	return append([]byte{markSealed}, sealed...), nil
}

// unwrap undoes wrap.
func unwrap(sealer Sealer, where, data []byte) ([]byte, error) {
	if len(data) == 0 {
		return nil, errors.New("stored data is empty")
	}
	return unwrapMarked(sealer, where, data[0], data[1:])
}

// unwrapMarked undoes wrap where the mark is apart.
func unwrapMarked(sealer Sealer, where []byte, mark byte, rest []byte) ([]byte, error) {
	switch mark {
	case markPlain:
		return rest, nil
	case markSealed:
		if sealer == nil {
			return nil, &KeyError{ID: "for this data", Hint: hintSetKey}
		}
		return sealer.Open(where, rest)
	}
	return nil, fmt.Errorf("stored data begins with %d: written by a newer version", mark)
}

// rowPlace is what a journal row's data is bound to.
func rowPlace(run machine.RunID, seq int32) []byte {
	b := make([]byte, 0, 16)
	b = append(b, "row\x00"...)
	b = binary.BigEndian.AppendUint64(b, uint64(run))
	return binary.BigEndian.AppendUint32(b, uint32(seq))
}

// definitionPlace is what a definition's data is bound to.
func definitionPlace(digest string) []byte { return []byte("definition\x00" + digest) }

// encodeRow makes the data of a journal row of this time, in memory of its own. The
// row follows those of which before is the link; the new link is returned.
func encodeRow(sealer Sealer, scratch *machine.Scratch, before link, run machine.RunID, seq int32, at time.Time, records []machine.Record) ([]byte, link, error) {
	data, err := scratch.AppendRecords(append(make([]byte, 0, 256), markPlain), records)
	if err != nil {
		return nil, link{}, fmt.Errorf("encode records: %w", err)
	}
	sensitive := false
	for _, rec := range records {
		sensitive = sensitive || rec.Sensitive() || sealer != nil && opaque(rec)
	}
	if sensitive {
		data, err = wrap(sealer, rowPlace(run, seq), data[1:], sensitive)
	} else {
		data = shorten(data, at)
	}
	if err != nil {
		return nil, link{}, err
	}
	data, after := before.bind(sealer, run, seq, at, data)
	return data, after, nil
}

// shorten leaves out of plain data what the row's time tells. It is most rows'
// case, and ten bytes of what may be 130.
func shorten(data []byte, at time.Time) []byte {
	rest, version, ok := machine.CutLone(data[1:], at)
	if !ok {
		return data
	}
	data = data[len(data)-len(rest)-1:]
	data[0] = markLone + version
	return data
}

// opaque reports whether a record holds bytes of which only the agent knows
// what they are: a checkpoint may hold what the agent was told in confidence.
func opaque(rec machine.Record) bool {
	p, ok := rec.Event().(machine.AttemptProgress)
	return ok && len(p.Blob) > 0
}

// A RowEncoder makes the journal rows of one run, one after the other, for tools that
// write rows without an engine.
type RowEncoder struct {
	Sealer Sealer // nil = what is sensitive is refused
	Run    machine.RunID

	next int32
	last link
}

// Follow goes on behind rows that are stored, the next ones of the run. Returns an
// error if their history does not verify.
func (e *RowEncoder) Follow(rows []store.Row) error {
	c := chain{link: e.last, rows: e.next}
	for _, row := range rows {
		if err := c.follow(e.Sealer, e.Run, row); err != nil {
			return fmt.Errorf("row %d of run %d %w", row.Seq, e.Run, err)
		}
	}
	e.next, e.last = c.rows, c.link
	return nil
}

// Encode makes the data of the run's next row. Returns a *KeyError if it holds what is
// sensitive and there is no key.
func (e *RowEncoder) Encode(at time.Time, records []machine.Record) ([]byte, error) {
	data, after, err := encodeRow(e.Sealer, &machine.Scratch{}, e.last, e.Run, e.next, at, records)
	if err == nil {
		e.next, e.last = e.next+1, after
	}
	return data, err
}

// DecodeRow returns the records of a journal row. It does not look whether the row
// is the one that was written in this place: VerifyRun does. A nil sealer opens only
// rows that hold nothing sensitive; otherwise a *KeyError says so.
func DecodeRow(sealer Sealer, run machine.RunID, row store.Row) ([]machine.Record, error) {
	plain, err := openRow(sealer, run, row)
	if err != nil {
		return nil, err
	}
	records, err := machine.DecodeRecords(plain)
	if err != nil {
		return nil, fmt.Errorf("decode row %d of run %d: %w", row.Seq, run, err)
	}
	return records, nil
}

// openRow returns the encoded records of a journal row.
func openRow(sealer Sealer, run machine.RunID, row store.Row) ([]byte, error) {
	body, _, ok := cutCheck(row.Data)
	if !ok {
		return nil, fmt.Errorf("open row %d of run %d: its data is cut short", row.Seq, run)
	}
	mark, rest := body[0]&^markFlags, body[1:]
	if mark == markPlain {
		return rest, nil
	}
	if mark >= markLone {
		plain, err := machine.AppendLone(make([]byte, 0, machine.LoneHeading+len(row.Data)), rest, mark-markLone, row.At)
		if err != nil {
			return nil, fmt.Errorf("open row %d of run %d: %w", row.Seq, run, err)
		}
		return plain, nil
	}
	plain, err := unwrapMarked(sealer, rowPlace(run, row.Seq), mark, rest)
	if err != nil {
		return nil, fmt.Errorf("open row %d of run %d: %w", row.Seq, run, err)
	}
	return plain, nil
}

// messagePlace is what a message's data is bound to.
func messagePlace(run machine.RunID) []byte {
	return binary.BigEndian.AppendUint64([]byte("message\x00"), uint64(run))
}

// encodeMessage makes the data of a message. Whatever carries a value is sealed
// if there is a key: what is sensitive in it is known to the definition only.
func encodeMessage(sealer Sealer, run machine.RunID, e machine.Event) ([]byte, error) {
	plain, err := machine.EncodeEvent(e)
	if err != nil {
		return nil, fmt.Errorf("encode message: %w", err)
	}
	return wrap(sealer, messagePlace(run), plain, sealer != nil)
}

// decodeMessage undoes encodeMessage.
func decodeMessage(sealer Sealer, run machine.RunID, data []byte) (machine.Event, error) {
	plain, err := unwrap(sealer, messagePlace(run), data)
	if err != nil {
		return nil, fmt.Errorf("open message to run %s: %w", store.RunName(run), err)
	}
	e, err := machine.DecodeEvent(plain)
	if err != nil {
		return nil, fmt.Errorf("decode message to run %s: %w", store.RunName(run), err)
	}
	return e, nil
}

// EncodeMessage makes the data of a message that says e to a run, for whoever
// posts without an Operator.
func EncodeMessage(sealer Sealer, run machine.RunID, e machine.Event) ([]byte, error) {
	return encodeMessage(sealer, run, e)
}
