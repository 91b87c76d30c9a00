package postgres

import (
	"database/sql"
	"encoding/binary"
	"time"

	"github.com/lib/pq"

	"github.com/saga-engine/engine/engine/store"
)

// Type numbers of array elements (pg_type.oid).
const (
	oidBytea       = 17
	oidInt8        = 20
	oidInt2        = 21
	oidInt4        = 23
	oidText        = 25
	oidTimestamptz = 1184
)

// An array encodes a one-dimensional SQL array in the binary format of the protocol. The
// text format would double the size of bytea elements, and the server would have to parse
// the text. The connection needs the setting binary_parameters=yes. With this setting the
// driver sends a []byte argument unchanged.
type array struct {
	buf []byte
	n   int
}

const arrayHeader = 20

// reset removes all elements and sets the type of new elements. It keeps the buffer.
func (a *array) reset(oid uint32) {
	a.n = 0
	a.buf = append(a.buf[:0], make([]byte, arrayHeader)...)
	binary.BigEndian.PutUint32(a.buf[0:], 1) // number of dimensions
	binary.BigEndian.PutUint32(a.buf[4:], 1) // the array may contain NULL
	binary.BigEndian.PutUint32(a.buf[8:], oid)
	binary.BigEndian.PutUint32(a.buf[16:], 1) // index of the first element
}

// bytes returns the encoded array. The result is valid until the next call of reset.
func (a *array) bytes() []byte {
	binary.BigEndian.PutUint32(a.buf[12:], uint32(a.n))
	if a.n == 0 { // an empty array has no dimension
		binary.BigEndian.PutUint32(a.buf[0:], 0)
		return a.buf[:12]
	}
	return a.buf
}

func (a *array) null() {
	a.n++
	a.buf = binary.BigEndian.AppendUint32(a.buf, 0xFFFFFFFF)
}

func (a *array) int2(v int16) {
	a.n++
	a.buf = binary.BigEndian.AppendUint32(a.buf, 2)
	a.buf = binary.BigEndian.AppendUint16(a.buf, uint16(v))
}

func (a *array) int4(v int32) {
	a.n++
	a.buf = binary.BigEndian.AppendUint32(a.buf, 4)
	a.buf = binary.BigEndian.AppendUint32(a.buf, uint32(v))
}

func (a *array) int8(v int64) {
	a.n++
	a.buf = binary.BigEndian.AppendUint32(a.buf, 8)
	a.buf = binary.BigEndian.AppendUint64(a.buf, uint64(v))
}

func (a *array) blob(v []byte) {
	a.n++
	a.buf = binary.BigEndian.AppendUint32(a.buf, uint32(len(v)))
	a.buf = append(a.buf, v...)
}

func (a *array) text(v string) {
	a.n++
	a.buf = binary.BigEndian.AppendUint32(a.buf, uint32(len(v)))
	a.buf = append(a.buf, v...)
}

// infinity is the server's value for a timestamp that is later than all others. The store
// uses it for store.Never.
const infinity = 1<<63 - 1

// time appends a timestamptz, in microseconds since 2000.
func (a *array) time(t time.Time) {
	if t.Equal(store.Never) {
		a.int8(infinity)
		return
	}
	a.int8(t.UnixMicro() - epoch)
}

// epoch is 2000-01-01 UTC in microseconds since 1970.
const epoch = 946684800 * 1_000_000

// int64s returns the numbers in the only column of rows, and closes rows.
func int64s(rows *sql.Rows) (pq.Int64Array, error) {
	defer rows.Close()
	var out pq.Int64Array
	for rows.Next() {
		var n int64
		if err := rows.Scan(&n); err != nil {
			return nil, err
		}
		out = append(out, n)
	}
	return out, rows.Err()
}
