package machine

import (
	"encoding/binary"
	"fmt"
	"time"

	"github.com/saga-engine/engine/engine/internal/model"
)

// LoneHeading is how many bytes AppendLone puts in front at most.
const LoneHeading = 3 * binary.MaxVarintLen64

// CutLone returns the end of what AppendRecords has appended, without what the
// reader knows anyway: that it is of the present format, which is returned, that
// it is one record, and of which time. ok is false if it is not so.
func CutLone(data []byte, at time.Time) (rest []byte, version byte, ok bool) {
	d := decoder{b: data}
	if d.uint() != format || d.uint() != 1 || model.Instant(d.uint()) != model.ToInstant(at) || d.err != nil {
		return nil, 0, false
	}
	return d.b, format, true
}

// AppendLone appends to b what DecodeRecords reads, of what CutLone returned. It
// returns ErrFormat for a newer format, and ErrCorrupt for one that has no lone
// records.
func AppendLone(b, rest []byte, version byte, at time.Time) ([]byte, error) {
	switch {
	case version > format:
		return b, fmt.Errorf("%w: %d, this engine reads up to %d", ErrFormat, version, format)
	case version < 3: // there, the length of the record came first
		return b, fmt.Errorf("%w: a lone record of format %d", ErrCorrupt, version)
	}
	b = binary.AppendUvarint(b, uint64(version))
	b = binary.AppendUvarint(b, 1)
	b = binary.AppendUvarint(b, uint64(model.ToInstant(at)))
	return append(b, rest...), nil
}
