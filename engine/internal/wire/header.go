package wire

import (
	"encoding/binary"
	"fmt"
	"time"

	"github.com/saga-engine/engine/engine/internal/model"
)

// HeaderSize is the largest size, in bytes, of the header of a single record.
const HeaderSize = 3 * binary.MaxVarintLen64

// CutSingle removes the header from the bytes of a single record. Most rows have about 130 bytes,
// and removing the header saves 10 of them. The header holds the format, the number of records, and
// the time of the record. Nothing is lost: CutSingle returns the format as `version`, the number is
// 1, and the journal row stores the time too. The parameter `at` is the time of the row. If `data`
// is not a single record of the present format, or the record has another time than `at`, the
// result `ok` is false.
func CutSingle(data []byte, at time.Time) (rest []byte, version byte, ok bool) {
	d := decoder{b: data}
	if d.uint() != Format || d.uint() != 1 || model.Instant(d.uint()) != model.ToInstant(at) || d.err != nil {
		return nil, 0, false
	}
	return d.b, Format, true
}

// AppendSingle makes the original bytes from the results of CutSingle, and appends them to b.
// It returns ErrFormat for a newer format. It returns ErrCorrupt for the formats 1 and 2,
// because CutSingle never removes their headers.
func AppendSingle(b, rest []byte, version byte, at time.Time) ([]byte, error) {
	switch {
	case version > Format:
		return b, fmt.Errorf("%w: %d, this engine reads up to %d", ErrFormat, version, Format)
	case version < 3: // these formats store the length of the record in the header
		return b, fmt.Errorf("%w: a record without header of format %d", ErrCorrupt, version)
	}
	b = binary.AppendUvarint(b, uint64(version))
	b = binary.AppendUvarint(b, 1)
	b = binary.AppendUvarint(b, uint64(model.ToInstant(at)))
	return append(b, rest...), nil
}
