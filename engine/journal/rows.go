package journal

import (
	"encoding/binary"
	"fmt"
	"time"

	"github.com/saga-engine/engine/engine/crypt"
	"github.com/saga-engine/engine/engine/internal/wire"
	"github.com/saga-engine/engine/engine/machine"
	"github.com/saga-engine/engine/engine/machine/status"
	"github.com/saga-engine/engine/engine/store"
	"github.com/saga-engine/engine/engine/store/naming"
)

// markLone is in the first byte of a row that has exactly one record, if this record is not sealed
// and has the time of the row. The byte is markLone plus the number of the format, and the flags of
// the mark. Such a row omits the record's time, because the store keeps this time as the row's
// time. markLone is persisted and must never change.
const markLone = 16

// rowBinding returns the bytes to which the seal of a journal row is bound: the run and the number
// of the row. The sealed data cannot be used as another row.
func rowBinding(run status.RunID, seq int32) []byte {
	b := make([]byte, 0, 16)
	b = append(b, "row\x00"...)
	b = binary.BigEndian.AppendUint64(b, uint64(run))
	return binary.BigEndian.AppendUint32(b, uint32(seq))
}

// definitionBinding returns the bytes to which the seal of a definition is bound, so that the
// sealed data cannot be used as another definition. The bytes contain the digest.
func definitionBinding(digest string) []byte { return []byte("definition\x00" + digest) }

// A Scratch holds memory that NewRow.Encode and Reader.Fold use again for each row. The zero
// Scratch is ready to use, by one goroutine at a time.
type Scratch struct {
	encoder wire.Encoder
	reader  wire.Reader
}

// A NewRow is a journal row that is not encoded yet.
type NewRow struct {
	Run     status.RunID
	Seq     int32            // number of the row, from 0
	At      time.Time        // time of the row
	Before  Link             // link of the previous row; the zero link for the first row
	Records []machine.Record // may be empty
}

// Encode returns the data of the row in newly allocated memory, and the link for the next row. If
// a record is sensitive and sealer is nil, it returns a *KeyError.
func (r NewRow) Encode(sealer crypt.Sealer, scratch *Scratch) ([]byte, Link, error) {
	data, err := scratch.encoder.Append(append(make([]byte, 0, 256), crypt.MarkPlain), r.Records)
	if err != nil {
		return nil, Link{}, fmt.Errorf("encode records: %w", err)
	}
	sensitive := false
	for _, rec := range r.Records {
		sensitive = sensitive || rec.Sensitive() || sealer != nil && opaque(rec)
	}
	if sensitive {
		data, err = crypt.Wrap(sealer, rowBinding(r.Run, r.Seq), data[1:], sensitive)
	} else {
		data = shorten(data, r.At)
	}
	if err != nil {
		return nil, Link{}, err
	}
	data, after := r.Before.bind(sealer, r.Run, r.Seq, r.At, data)
	return data, after, nil
}

// shorten removes the header of a single record (wire.CutSingle), if the time of the record equals
// the time of the row: the store keeps the time of the row anyway. This works for most rows and
// saves 10 of approximately 130 bytes. Other data is returned unchanged.
func shorten(data []byte, at time.Time) []byte {
	rest, version, ok := wire.CutSingle(data[1:], at)
	if !ok {
		return data
	}
	data = data[len(data)-len(rest)-1:]
	data[0] = markLone + version
	return data
}

// opaque reports whether the event of a record is a checkpoint with data. Only the agent
// understands this data. If there is a key, the engine seals the data, because it may contain a
// secret that the agent received.
func opaque(rec machine.Record) bool {
	p, ok := rec.Event().(machine.AttemptProgress)
	return ok && len(p.Blob) > 0
}

// A RowEncoder encodes the journal rows of one run, one after the other. Tools that write rows
// without an engine use it.
type RowEncoder struct {
	Sealer crypt.Sealer // nil = a record with a sensitive value is refused
	Run    status.RunID

	next int32
	last Link
}

// Follow checks the next stored rows of the run, so that Encode then encodes the row after them. It
// returns an error if a row is missing, was changed or was moved.
func (e *RowEncoder) Follow(rows []store.Row) error {
	c := chain{Link: e.last, rows: e.next}
	for _, row := range rows {
		if err := c.follow(e.Sealer, e.Run, row); err != nil {
			return fmt.Errorf("row %d of run %d %w", row.Seq, e.Run, err)
		}
	}
	e.next, e.last = c.rows, c.Link
	return nil
}

// Encode returns the data of the run's next row. It returns a *KeyError if a record is
// sensitive and there is no key.
func (e *RowEncoder) Encode(at time.Time, records []machine.Record) ([]byte, error) {
	row := NewRow{Run: e.Run, Seq: e.next, At: at, Before: e.last, Records: records}
	data, after, err := row.Encode(e.Sealer, &Scratch{})
	if err == nil {
		e.next, e.last = e.next+1, after
	}
	return data, err
}

// DecodeRow returns the records of a journal row. It does not check whether the row was changed or
// moved: Verify does that. If the parameter `sealer` is nil, DecodeRow can read only rows that are
// not sealed; for other rows it returns a *KeyError.
func DecodeRow(sealer crypt.Sealer, run status.RunID, row store.Row) ([]machine.Record, error) {
	plain, err := openRow(sealer, run, row)
	if err != nil {
		return nil, err
	}
	records, err := wire.Decode(plain)
	if err != nil {
		return nil, fmt.Errorf("decode row %d of run %d: %w", row.Seq, run, err)
	}
	return records, nil
}

// openRow returns the encoded records of a journal row.
func openRow(sealer crypt.Sealer, run status.RunID, row store.Row) ([]byte, error) {
	body, _, ok := cutCheck(row.Data)
	if !ok {
		return nil, fmt.Errorf("open row %d of run %d: its data is cut short", row.Seq, run)
	}
	mark, rest := body[0]&^markFlags, body[1:]
	if mark == crypt.MarkPlain {
		return rest, nil
	}
	if mark >= markLone {
		plain, err := wire.AppendSingle(make([]byte, 0, wire.HeaderSize+len(row.Data)), rest, mark-markLone, row.At)
		if err != nil {
			return nil, fmt.Errorf("open row %d of run %d: %w", row.Seq, run, err)
		}
		return plain, nil
	}
	plain, err := crypt.UnwrapMarked(sealer, rowBinding(run, row.Seq), mark, rest)
	if err != nil {
		return nil, fmt.Errorf("open row %d of run %d: %w", row.Seq, run, err)
	}
	return plain, nil
}

// messageBinding returns the bytes to which the seal of a message is bound: the run of the message.
func messageBinding(run status.RunID) []byte {
	return binary.BigEndian.AppendUint64([]byte("message\x00"), uint64(run))
}

// EncodeMessage returns the data of a message. If there is a key, every message is sealed,
// because only the definition knows which values are sensitive.
func EncodeMessage(sealer crypt.Sealer, run status.RunID, e machine.Event) ([]byte, error) {
	plain, err := wire.EncodeEvent(e)
	if err != nil {
		return nil, fmt.Errorf("encode message: %w", err)
	}
	return crypt.Wrap(sealer, messageBinding(run), plain, sealer != nil)
}

// EncodeOpen returns the data of a message that is not sealed. So the event must hold no value of a
// run. DecodeMessage can decode the data for any run.
func EncodeOpen(e machine.Event) ([]byte, error) { return EncodeMessage(nil, 0, e) }

// DecodeMessage returns the event from the data that EncodeMessage made.
func DecodeMessage(sealer crypt.Sealer, run status.RunID, data []byte) (machine.Event, error) {
	plain, err := crypt.Unwrap(sealer, messageBinding(run), data)
	if err != nil {
		return nil, fmt.Errorf("open message to run %s: %w", naming.RunName(run), err)
	}
	e, err := wire.DecodeEvent(plain)
	if err != nil {
		return nil, fmt.Errorf("decode message to run %s: %w", naming.RunName(run), err)
	}
	return e, nil
}

// EventSize estimates how many bytes an event adds to the journal.
func EventSize(e machine.Event) int {
	switch e := e.(type) {
	case machine.AttemptOK:
		return 64 + len(e.Output.JSON())
	case machine.AttemptProgress:
		return 64 + len(e.Blob)
	case machine.SettleRequested:
		return 64 + len(e.Output.JSON())
	}
	return 64
}
