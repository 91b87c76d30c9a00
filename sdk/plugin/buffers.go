package plugin

import (
	"math/bits"
	"sync"

	"google.golang.org/grpc/mem"
)

// Buffers are at least minBuffer large, so that the next batch fits too; those
// that are larger than maxBuffer are not kept.
const (
	minBuffer = 16 << 10
	maxBuffer = 256 << 10
)

// buffers is the pool that batches are written into. Unlike gRPC's it does not
// clear what it hands out again, which for a batch of more than 32 KiB would be a
// whole megabyte: a buffer is written before it is read.
type buffers struct{ pool sync.Pool }

var _ mem.BufferPool = (*buffers)(nil)

// batches serves all sessions.
var batches buffers

// Get returns a buffer of length n. Its content is undefined.
func (p *buffers) Get(n int) *[]byte {
	if b, ok := p.pool.Get().(*[]byte); ok && cap(*b) >= n {
		*b = (*b)[:n]
		return b
	}
	size := minBuffer
	if n > size {
		size = 1 << bits.Len(uint(n-1))
	}
	b := make([]byte, n, size)
	return &b
}

// Put takes a buffer that nobody uses any more.
func (p *buffers) Put(b *[]byte) {
	if cap(*b) <= maxBuffer {
		p.pool.Put(b)
	}
}
