package journal

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"maps"
	"slices"

	"github.com/saga-engine/engine/engine/crypt"
	"github.com/saga-engine/engine/engine/internal/guard"
	"github.com/saga-engine/engine/engine/internal/wire"
	"github.com/saga-engine/engine/engine/machine"
	"github.com/saga-engine/engine/engine/machine/status"
	"github.com/saga-engine/engine/engine/store"
	"github.com/saga-engine/engine/engine/store/naming"
	"github.com/saga-engine/engine/engine/store/snapshots"
)

// A Point describes a run after the first rows of its journal. It holds everything that is needed
// to verify and to fold the later rows. EncodeSnapshot makes a snapshot of a Point.
type Point struct {
	Run    status.RunID
	Next   int32          // number of rows so far; at least 1
	State  *machine.State // state of the run; must not be changed any more
	Facts  int            // number of facts of the run so far (package story)
	Stored int64          // size of the rows so far, in bytes
	Link   Link           // link for the next row
	Notes  Notes
}

// Notes are values that an engine collects from the events of a run, in addition to the run's
// state.
type Notes struct {
	Sensitive []string    // sensitive strings of the run's variables and outputs, for redaction
	Refusals  map[int]int // for each node, how many times in a row its call was not sent
}

// snapshotFormat is the number of the present format of a snapshot. A snapshot of another format is
// not used: then the journal is read.
const snapshotFormat = 1

// snapshotBinding returns the bytes to which a snapshot is bound: its run and the number of rows
// that it covers. The data cannot be used as another snapshot.
func snapshotBinding(run status.RunID, next int32) []byte {
	b := binary.BigEndian.AppendUint64([]byte("snapshot\x00"), uint64(run))
	return binary.BigEndian.AppendUint32(b, uint32(next))
}

// Snapped reports whether a snapshot of the run can be made after the row with this link. A reader
// compares the snapshot with this row, which is the last row that the snapshot covers. So the row
// must have a tag if there is a key, and a checksum if there is none.
func (l Link) Snapped(sealer crypt.Sealer) bool {
	if sealer == nil {
		return l.best == summed
	}
	return l.best == tagged
}

// EncodeSnapshot returns the data of a snapshot. With a key the data is sealed: it cannot be read,
// changed or used for another run. Without a key it ends with a checksum, which finds accidental
// changes, like the checksum of a row.
func EncodeSnapshot(sealer crypt.Sealer, p *Point) ([]byte, error) {
	b := binary.AppendUvarint(make([]byte, 0, 1024), snapshotFormat)
	b = binary.AppendUvarint(b, uint64(p.Facts))
	b = binary.AppendUvarint(b, uint64(p.Stored))
	b = append(b, byte(p.Link.best))
	b = append(b, p.Link.tag[:]...)
	b = binary.BigEndian.AppendUint32(b, p.Link.sum)
	b = binary.AppendUvarint(b, uint64(len(p.Notes.Sensitive)))
	for _, s := range p.Notes.Sensitive {
		b = binary.AppendUvarint(b, uint64(len(s)))
		b = append(b, s...)
	}
	b = binary.AppendUvarint(b, uint64(len(p.Notes.Refusals)))
	for _, node := range slices.Sorted(maps.Keys(p.Notes.Refusals)) {
		b = binary.AppendUvarint(b, uint64(node))
		b = binary.AppendUvarint(b, uint64(p.Notes.Refusals[node]))
	}
	b = wire.AppendState(b, p.State)
	binding := snapshotBinding(p.Run, p.Next)
	data, err := crypt.Wrap(sealer, binding, b, sealer != nil)
	if err == nil && sealer == nil {
		data = binary.BigEndian.AppendUint32(data, checksum(binding, data))
	}
	return data, err
}

// Reasons why a snapshot is not used.
var (
	// errUnsealed is no sign of a fault: the state got its key after the snapshot was stored. But
	// if the state had its key before the run began, foldFrom returns errSnapshotChanged and not
	// errUnsealed.
	errUnsealed = errors.New("it is not sealed, and the state has an encryption key")
	// errOtherFormat is no sign of a fault: another version of the engine stored the snapshot.
	errOtherFormat = errors.New("another version of the engine wrote it")

	errSnapshotChanged = errors.New("it was changed, or belongs to another run")
	errSnapshotRow     = errors.New("the journal does not have the row after which it was made")
	errSnapshotRun     = errors.New("it holds another run")
)

// openSnapshot returns the Point from the data that EncodeSnapshot returned.
func openSnapshot(sealer crypt.Sealer, s *snapshots.Snapshot) (p Point, err error) {
	data, binding := s.Data, snapshotBinding(s.Run, s.Next)
	switch {
	case len(data) == 0:
		return Point{}, errSnapshotChanged
	case data[0] == crypt.MarkPlain && sealer != nil:
		return Point{}, errUnsealed
	case data[0] == crypt.MarkPlain:
		end := len(data) - sumSize
		if end < 1 || checksum(binding, data[:end]) != binary.BigEndian.Uint32(data[end:]) {
			return Point{}, errSnapshotChanged
		}
		data = data[:end]
	}
	plain, err := crypt.Unwrap(sealer, binding, data)
	if err != nil {
		return Point{}, err
	}
	r := snapshotReader{b: plain}
	if format := r.uint(); !r.bad && format != snapshotFormat {
		return Point{}, errOtherFormat
	}
	p = Point{Run: s.Run, Next: s.Next, Facts: int(r.uint()), Stored: int64(r.uint())}
	p.Link.best = protection(r.take(1)[0])
	p.Link.tag = [crypt.TagSize]byte(r.take(crypt.TagSize))
	p.Link.sum = binary.BigEndian.Uint32(r.take(4))
	for range r.count() {
		p.Notes.Sensitive = append(p.Notes.Sensitive, string(r.take(r.count())))
	}
	for range r.count() {
		if p.Notes.Refusals == nil {
			p.Notes.Refusals = map[int]int{}
		}
		node := int(r.uint())
		p.Notes.Refusals[node] = int(r.uint())
	}
	if r.bad {
		return Point{}, errSnapshotChanged
	}
	err = guard.Do(func() (err error) { p.State, err = wire.DecodeState(r.b); return err })
	switch {
	case errors.Is(err, wire.ErrFormat):
		return Point{}, errOtherFormat
	case err != nil:
		return Point{}, err
	case p.State.RunID() != s.Run:
		return Point{}, errSnapshotRun
	}
	return p, nil
}

// A snapshotReader reads the part of a snapshot before the state. If there are too few bytes, it
// sets `bad`, and returns zeros.
type snapshotReader struct {
	b   []byte
	bad bool
}

func (r *snapshotReader) uint() uint64 {
	v, n := binary.Uvarint(r.b)
	if n <= 0 {
		r.b, r.bad = nil, true
		return 0
	}
	r.b = r.b[n:]
	return v
}

// count reads a number of items or bytes that follow.
func (r *snapshotReader) count() int {
	n := r.uint()
	if n > uint64(len(r.b)) {
		r.b, r.bad = nil, true
		return 0
	}
	return int(n)
}

// take returns the next n bytes.
func (r *snapshotReader) take(n int) []byte {
	if n > len(r.b) {
		r.b, r.bad = nil, true
		return make([]byte, n)
	}
	b := r.b[:n:n]
	r.b = r.b[n:]
	return b
}

// follows checks that a row is the last row that a Point covers.
func (p *Point) follows(row store.Row) bool {
	body, check, ok := cutCheck(row.Data)
	if !ok || row.Seq != p.Next-1 || protectionOf(body[0]) != p.Link.best {
		return false
	}
	switch p.Link.best {
	case tagged:
		return [crypt.TagSize]byte(check) == p.Link.tag
	case summed:
		return binary.BigEndian.Uint32(check) == p.Link.sum
	}
	return false
}

// A Noter collects notes about the events of a run while the run is folded. The method Resume is
// called before the first event, and replaces all notes. Its argument holds the notes about the
// events before the snapshot. The argument is empty if the run is folded from its first row. If the
// rows do not fit the snapshot, Resume is called a second time with empty notes. Then the method
// Note gets all events from the first row on.
type Noter interface {
	Resume(Notes)
	Note(machine.Event)
}

// FoldShort does the same as Fold for a run that was loaded with package snapshots. It begins with
// the snapshot, and folds only the rows after it. If the snapshot cannot be used, or the rows after
// it do not fit, FoldShort reads all rows of the run from the store, because only the journal
// counts. In this case it also sets Run.Refused, unless the reason is certainly no fault. There are
// two such reasons: the state got its encryption key after the snapshot was stored, or another
// version of the engine wrote the snapshot.
func (rd Reader) FoldShort(ctx context.Context, l snapshots.Loaded, scratch *Scratch, noter Noter) (Run, error) {
	if l.Snapshot == nil {
		noter.Resume(Notes{})
		return rd.Fold(ctx, l.Loaded, scratch, noter.Note)
	}
	story, err := rd.foldFrom(ctx, l, scratch, noter)
	if err == nil || ctx.Err() != nil {
		return story, err
	}
	var reason *SnapshotError
	if !errors.As(err, &reason) && !Permanent(err) {
		return story, err // the store did not answer
	}
	head, rows, err := store.LoadRun(ctx, rd.Store, l.Head.Run)
	if err != nil {
		return Run{}, fmt.Errorf("load run %s: %w", naming.RunName(l.Head.Run), err)
	}
	noter.Resume(Notes{})
	if story, err = rd.Fold(ctx, store.Loaded{Head: head, Rows: rows}, scratch, noter.Note); err != nil {
		return story, err
	}
	if reason == nil { // the journal is right as a whole, so the snapshot is wrong
		reason = &SnapshotError{Run: head.Name, Next: l.Snapshot.Next, Err: errSnapshotChanged}
	}
	if !errors.Is(reason, errUnsealed) && !errors.Is(reason, errOtherFormat) {
		story.Refused = reason
	}
	return story, nil
}

// LoadState does the same as Load, but reads less: if the run has a snapshot, LoadState reads the
// snapshot and the rows after it. Then Run.Records has only the records of the rows after the
// snapshot, and Run.Covered is greater than 0.
func LoadState(ctx context.Context, st store.Full, sealer crypt.Sealer, defs *Definitions, run status.RunID) (Run, error) {
	l, err := snapshots.LoadOne(ctx, st, run)
	if err != nil {
		return Run{}, fmt.Errorf("load run %s: %w", naming.RunName(run), err)
	}
	return Reader{st, sealer, defs}.FoldShort(ctx, l, nil, noNotes{})
}

type noNotes struct{}

func (noNotes) Resume(Notes)       {}
func (noNotes) Note(machine.Event) {}

// foldFrom folds a run from its snapshot.
func (rd Reader) foldFrom(ctx context.Context, l snapshots.Loaded, scratch *Scratch, noter Noter) (Run, error) {
	story := Run{Head: l.Head}
	if err := story.begin(ctx, rd.Defs); err != nil {
		return Run{}, err
	}
	p, err := openSnapshot(rd.Sealer, l.Snapshot)
	if errors.Is(err, errUnsealed) && story.chain.strict { // the state had its key before this run began
		err = errSnapshotChanged
	}
	if err == nil && (len(l.Rows) == 0 || !p.follows(l.Rows[0])) {
		err = errSnapshotRow
	}
	if err != nil {
		return Run{}, &SnapshotError{Run: l.Head.Name, Next: l.Snapshot.Next, Err: err}
	}
	noter.Resume(p.Notes)
	story.State, story.Facts, story.Stored = p.State, p.Facts, p.Stored
	story.chain.Link, story.chain.rows = p.Link, p.Next
	story.Covered, story.CoveredBytes, story.SnapshotBytes = p.Next, p.Stored, int64(len(l.Snapshot.Data))
	for _, m := range p.State.Run().Moves { // the rows that moved the run are not folded
		if err := story.move(ctx, rd.Defs, m.Workflow, m.StepOf); err != nil {
			return Run{}, err
		}
	}
	return story, story.foldAll(ctx, rd, l.Rows[1:], scratch, noter.Note)
}
