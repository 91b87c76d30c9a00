package plugin

import (
	"math/bits"
	"sync"

	"google.golang.org/grpc/mem"
)

// Limits for the buffers of batches. A new buffer has at least minBuffer bytes, so that the
// next batch probably fits into the buffer, too. Put drops a buffer of more than maxBuffer
// bytes.
const (
	minBuffer = 16 << 10
	maxBuffer = 256 << 10
)

// buffers is a pool of buffers for batches. gRPC's own pool fills each buffer with zeros before it
// gives the buffer out again. For a batch of more than 32 KiB, it writes a whole megabyte of zeros.
// The type buffers writes no zeros: the code that uses a buffer writes each byte before it reads
// the byte.
type buffers struct{ pool sync.Pool }

var _ mem.BufferPool = (*buffers)(nil)

// batches is the pool of buffers that all sessions share.
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

// Put returns a buffer to the pool. The caller must not use the buffer any more.
func (p *buffers) Put(b *[]byte) {
	if cap(*b) <= maxBuffer {
		p.pool.Put(b)
	}
}
