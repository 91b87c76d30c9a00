package wire

import (
	"encoding/binary"
	"fmt"
	"time"

	"github.com/saga-engine/engine/engine/internal/model"
)

// HeaderSize is how many bytes the header of a single record has at most.
const HeaderSize = 3 * binary.MaxVarintLen64

// CutSingle cuts the header off the bytes of a single record: the format, which is
// returned, the number of records and the time. The row has the time. This saves 10 of
// about 130 bytes in most rows. ok is false for bytes that are not one record of the present
// format and of this time.
func CutSingle(data []byte, at time.Time) (rest []byte, version byte, ok bool) {
	d := decoder{b: data}
	if d.uint() != Format || d.uint() != 1 || model.Instant(d.uint()) != model.ToInstant(at) || d.err != nil {
		return nil, 0, false
	}
	return d.b, Format, true
}

// AppendSingle appends the bytes that CutSingle was given, made of those that it returned,
// to b. It returns ErrFormat for a newer format, and ErrCorrupt for one whose single records
// are never cut.
func AppendSingle(b, rest []byte, version byte, at time.Time) ([]byte, error) {
	switch {
	case version > Format:
		return b, fmt.Errorf("%w: %d, this engine reads up to %d", ErrFormat, version, Format)
	case version < 3: // those have the length of the record in the header
		return b, fmt.Errorf("%w: a record without header of format %d", ErrCorrupt, version)
	}
	b = binary.AppendUvarint(b, uint64(version))
	b = binary.AppendUvarint(b, 1)
	b = binary.AppendUvarint(b, uint64(model.ToInstant(at)))
	return append(b, rest...), nil
}
