package journal

import (
	"encoding/binary"
	"fmt"
	"hash/crc32"
	"time"

	"github.com/saga-engine/engine/engine/crypt"
	"github.com/saga-engine/engine/engine/machine/status"
	"github.com/saga-engine/engine/engine/store"
	"github.com/saga-engine/engine/engine/store/naming"
)

// A run's history is a chain. Each row that this version of the engine writes ends with a tag or a
// checksum. The engine computes the tag or checksum from the row's data, run, number and time, and
// from the tag or checksum of the previous row (decision 0020). With an encryption key, rows have
// tags, which cannot be made without the key. Without a key, rows have checksums, which show
// accidental changes. Rows of earlier versions have neither a tag nor a checksum, but the tag or
// checksum of the next row covers them, too.
const (
	sumSize = 4

	// Flags in the mark, which is the first byte of a row. The numbers are persisted.
	markTagged = 0x80
	markSummed = 0x40
	markFlags  = markTagged | markSummed
)

// A protection says whether a row ends with a tag, a checksum or neither. Within a run, a row
// with a weaker protection than an earlier row is an error.
type protection uint8

const (
	unprotected protection = iota // the row has no tag and no checksum: an earlier version of the engine wrote it
	summed                        // the row has a checksum, made without a key
	tagged                        // the row has a tag, made with a key (HMAC)
)

// protectionOf returns the protection of stored data whose first byte is `mark`.
func protectionOf(mark byte) protection {
	switch {
	case mark&markTagged != 0:
		return tagged
	case mark&markSummed != 0:
		return summed
	}
	return unprotected
}

// cutCheck splits a row's data into two parts: the tag or checksum at the end, and the bytes before
// it. The result `ok` is false if `data` is too short.
func cutCheck(data []byte) (body, check []byte, ok bool) {
	if len(data) == 0 {
		return nil, nil, false
	}
	size := 0
	switch protectionOf(data[0]) {
	case tagged:
		size = crypt.TagSize
	case summed:
		size = sumSize
	}
	if len(data) < 1+size {
		return nil, nil, false
	}
	return data[:len(data)-size], data[len(data)-size:], true
}

// A Link holds what is needed to compute the tag or checksum of the next row of a run. The zero
// Link is for the first row.
type Link struct {
	// Tag of the last row. If that row has no tag, this is the tag that the newest key would give
	// it; zero = there is no key.
	tag  [crypt.TagSize]byte
	sum  uint32     // checksum of the latest row that has no tag; 0 = there is no such row
	best protection // strongest protection of the rows so far
}

// bindingSize is the largest number of bytes that appendBinding appends: with a tag of the previous
// row. With a checksum, it appends fewer.
const bindingSize = 4 + 8 + 4 + 8 + crypt.TagSize

// appendBinding appends to b the bytes that the tag or checksum of a row covers in addition to the
// row's data: the run, number and time of the row, and the tag or checksum of the previous row.
func appendBinding(b []byte, run status.RunID, seq int32, at time.Time, before []byte) []byte {
	b = append(b, "row\x00"...)
	b = binary.BigEndian.AppendUint64(b, uint64(run))
	b = binary.BigEndian.AppendUint32(b, uint32(seq))
	b = binary.BigEndian.AppendUint64(b, uint64(at.UnixMicro()))
	return append(b, before...)
}

var castagnoli = crc32.MakeTable(crc32.Castagnoli)

func checksum(binding, body []byte) uint32 {
	return crc32.Update(crc32.Checksum(binding, castagnoli), castagnoli, body)
}

// bind appends the tag or checksum to the data of a row. It returns the longer data, and the link
// for the next row. It may change the slice `data`. For example, it writes the bytes of
// appendBinding behind the data for a short time, because this saves an allocation.
func (l Link) bind(sealer crypt.Sealer, run status.RunID, seq int32, at time.Time, data []byte) ([]byte, Link) {
	n := len(data)
	if sealer == nil {
		data[0] |= markSummed
		data = appendBinding(data, run, seq, at, binary.BigEndian.AppendUint32(nil, l.sum))
		l.sum, l.best = checksum(data[n:], data[:n]), summed
		return binary.BigEndian.AppendUint32(data[:n], l.sum), l
	}
	data[0] |= markTagged
	data = appendBinding(data, run, seq, at, l.tag[:])
	l.tag, l.best = sealer.Tag(data[n:], data[:n]), tagged
	return append(data[:n], l.tag[:]...), l
}

// A chain checks the rows of a run one by one, and finds the first row that does not continue the
// rows before it.
type chain struct {
	Link
	rows   int32 // number of rows checked so far
	strict bool  // every row must have a tag
	// The field `others` is used only until the first row with a tag. Before this row, the chain
	// does not know which key has made its tag. So for each known key, the chain computes the tag
	// that the key would give the last row. Link.tag is the tag of the first key, and `others` has
	// the tags of the further keys, in their order.
	others [][crypt.TagSize]byte
	buf    [bindingSize]byte
}

// follow checks the next row. If the parameter `sealer` is nil, follow accepts every tag, because
// tags cannot be checked without a key. The error says what is wrong with the row.
func (c *chain) follow(sealer crypt.Sealer, run status.RunID, row store.Row) error {
	if row.Seq != c.rows {
		return faultMissing
	}
	body, check, ok := cutCheck(row.Data)
	if !ok {
		return faultChanged
	}
	kind := protectionOf(body[0])
	switch {
	case kind != tagged && (c.strict || c.best == tagged):
		return faultPlain
	case kind < c.best:
		return faultBare
	}
	if kind != tagged {
		var before [sumSize]byte
		binary.BigEndian.PutUint32(before[:], c.sum)
		sum := checksum(appendBinding(c.buf[:0], run, row.Seq, row.At, before[:]), body)
		if kind == summed && sum != binary.BigEndian.Uint32(check) {
			return faultChanged
		}
		c.sum = sum
	}
	if sealer != nil {
		if kind != tagged {
			c.computeTags(sealer, run, row, body)
		} else if c.taggedBy(sealer, run, row, body, check) == nil {
			return faultChanged
		}
	}
	if kind == tagged {
		c.tag = [crypt.TagSize]byte(check)
	}
	c.rows, c.best = c.rows+1, max(c.best, kind)
	return nil
}

// computeTags computes the tag that each key would give a row without a tag. It sets c.tag for the
// first key, and c.others for the further keys.
func (c *chain) computeTags(sealer crypt.Sealer, run status.RunID, row store.Row, body []byte) {
	keys := crypt.Split(sealer)
	if c.others == nil && len(keys) > 1 {
		c.others = make([][crypt.TagSize]byte, len(keys)-1)
	}
	for i := range c.others {
		c.others[i] = keys[i+1].Tag(appendBinding(c.buf[:0], run, row.Seq, row.At, c.others[i][:]), body)
	}
	c.tag = keys[0].Tag(appendBinding(c.buf[:0], run, row.Seq, row.At, c.tag[:]), body)
}

// taggedBy returns the key that made the tag of the next row; nil = no known key did.
func (c *chain) taggedBy(sealer crypt.Sealer, run status.RunID, row store.Row, body, check []byte) crypt.Sealer {
	for i, key := range crypt.Split(sealer) {
		before := c.tag[:]
		if i > 0 && c.others != nil && c.best != tagged {
			before = c.others[i-1][:]
		}
		if key.Tagged(appendBinding(c.buf[:0], run, row.Seq, row.At, before), body, check) {
			return key
		}
	}
	return nil
}

// A historyFault says what is wrong with a row of a history.
type historyFault string

// Error describes the fault for people.
func (f historyFault) Error() string { return string(f) }

const (
	faultMissing historyFault = "is missing"
	faultChanged historyFault = "was changed, or belongs elsewhere, or the row before it was replaced"
	faultPlain   historyFault = "carries no tag of the encryption key, but each row that engines of this state wrote must carry one"
	faultBare    historyFault = "carries no check, but the rows before it carry one"
	faultTail    historyFault = "and those after it are missing: the run's own row is newer than its journal"
)

// A HistoryError says that the journal of a run differs from the rows that engines wrote: a
// row was changed, removed, moved, or written without the key. No engine works on such a
// run.
type HistoryError struct {
	Run    int64  // internal id
	Name   string // public id
	Seq    int32  // number of the first row that is wrong
	Reason string // what is wrong with the row, as the end of a sentence
}

// Error names the row and what is wrong with it.
func (e *HistoryError) Error() string {
	return fmt.Sprintf("the history of the run does not verify: row %d %s", e.Seq, e.Reason)
}

// hint returns what a person can do, with the command that checks the history again.
func (e *HistoryError) hint() string {
	return fmt.Sprintf("no engine continues it; `engine db verify %s` checks it again; compare it with a backup, and look who can write to the state", e.Name)
}

// broken returns the error for a run whose row with the number seq does not continue the rows
// before it. The parameter `why` says what is wrong.
func broken(head store.Head, seq int32, why error) *RunError {
	h := &HistoryError{Run: int64(head.Run), Name: head.Name, Seq: seq, Reason: why.Error()}
	if h.Name == "" {
		h.Name = naming.RunName(head.Run)
	}
	return &RunError{Run: h.Run, Name: h.Name, Err: h, Hint: h.hint()}
}

// LinkOf returns the link for the row after the given stored rows. It does not decode their
// records. The error is a *RunError if a row does not continue the rows before it.
func LinkOf(sealer crypt.Sealer, head store.Head, rows []store.Row) (Link, error) {
	var c chain
	for _, row := range rows {
		if err := c.follow(sealer, head.Run, row); err != nil {
			return Link{}, broken(head, row.Seq, err)
		}
	}
	return c.Link, nil
}
