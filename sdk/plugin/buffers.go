package plugin

import (
	"math/bits"
	"sync"

	"google.golang.org/grpc/mem"
)

// A buffer has at least minBuffer bytes, so that the next batch probably fits into it, too.
// Buffers larger than maxBuffer bytes are not kept.
const (
	minBuffer = 16 << 10
	maxBuffer = 256 << 10
)

// buffers is the pool of buffers for batches. Unlike gRPC's pool it does not clear a buffer
// before it is used again. For a batch of more than 32 KiB gRPC would clear a whole
// megabyte. Clearing is not needed, because a buffer is written before it is read.
type buffers struct{ pool sync.Pool }

var _ mem.BufferPool = (*buffers)(nil)

// batches is the pool that all sessions share.
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

// Put returns a buffer to the pool. The caller must not use it any more.
func (p *buffers) Put(b *[]byte) {
	if cap(*b) <= maxBuffer {
		p.pool.Put(b)
	}
}
