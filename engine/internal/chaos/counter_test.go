package chaos

import (
	"bytes"
	"encoding/binary"
	"io"
	"net"
	"net/url"
	"sync"
	"sync/atomic"
	"testing"
)

// A counter passes the messages between an engine and its database, and counts the statements of the
// engine. It can also swallow what the database sends on the connections for LISTEN, as a network does
// that has forgotten a connection: neither side notices.
type counter struct {
	DSN string // DSN that leads through the counter

	listener   net.Listener
	server     string
	statements atomic.Int64 // statements, without the probes of a connection for LISTEN
	deaf       atomic.Bool  // swallow notifications
	swallowed  atomic.Int64 // bytes that were swallowed

	mu    sync.Mutex // protects the fields below
	texts map[string]int
	conns []net.Conn
	work  sync.WaitGroup
}

// newCounter starts a counter in front of a database. It ends with the test.
func newCounter(t *testing.T, dsn string) *counter {
	t.Helper()
	u, err := url.Parse(dsn)
	if err != nil {
		t.Fatal(err)
	}
	c := &counter{server: u.Host, texts: map[string]int{}}
	if c.listener, err = net.Listen("tcp", "127.0.0.1:0"); err != nil {
		t.Fatal(err)
	}
	u.Host = c.listener.Addr().String()
	c.DSN = u.String()
	c.work.Go(func() {
		for {
			conn, err := c.listener.Accept()
			if err != nil {
				return // the listener is closed
			}
			c.work.Go(func() { c.serve(conn) })
		}
	})
	t.Cleanup(c.close)
	return c
}

func (c *counter) close() {
	_ = c.listener.Close() // closing it twice does no harm
	c.mu.Lock()
	for _, conn := range c.conns {
		_ = conn.Close() // the connection may have ended already
	}
	c.mu.Unlock()
	c.work.Wait()
}

// serve passes the messages of one connection on.
func (c *counter) serve(client net.Conn) {
	defer client.Close()
	server, err := net.Dial("tcp", c.server)
	if err != nil {
		return // the client sees that its connection ends
	}
	defer server.Close()
	c.mu.Lock()
	c.conns = append(c.conns, client, server)
	c.mu.Unlock()
	var listens atomic.Bool
	c.work.Go(func() {
		defer client.Close()
		buffer := make([]byte, 32<<10)
		for {
			n, err := server.Read(buffer)
			if listens.Load() && c.deaf.Load() {
				c.swallowed.Add(int64(n))
			} else if _, failed := client.Write(buffer[:n]); failed != nil {
				return
			}
			if err != nil {
				return
			}
		}
	})
	head := make([]byte, 5)
	for size := 4; ; size = 5 { // the first message has no byte for its kind
		if _, err := io.ReadFull(client, head[:size]); err != nil {
			return
		}
		body := make([]byte, max(4, binary.BigEndian.Uint32(head[size-4:size]))-4)
		if _, err := io.ReadFull(client, body); err != nil {
			return
		}
		if size == 5 && c.count(head[0], body) {
			listens.Store(true)
		}
		if _, err := server.Write(append(head[:size:size], body...)); err != nil {
			return
		}
	}
}

// count counts a message if it is a statement: kind Q is a simple query, and kind P brings the text of
// a statement that the next message executes. It reports whether the statement is LISTEN.
func (c *counter) count(kind byte, body []byte) (listens bool) {
	switch {
	case kind == 'P':
		_, body, _ = bytes.Cut(body, []byte{0}) // the name of the statement
	case kind == 'E':
		c.statements.Add(1)
		return false
	case kind != 'Q' || len(bytes.Trim(body, "; \x00")) == 0:
		return false
	default:
		c.statements.Add(1)
	}
	text, _, _ := bytes.Cut(body, []byte{0})
	c.mu.Lock()
	c.texts[string(text[:min(len(text), 120)])]++
	c.mu.Unlock()
	return kind == 'Q' && bytes.HasPrefix(text, []byte("LISTEN"))
}

// reset forgets the statements so far.
func (c *counter) reset() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.statements.Store(0)
	clear(c.texts)
}

// all returns the texts of the statements, and how often each was prepared or sent.
func (c *counter) all() map[string]int {
	c.mu.Lock()
	defer c.mu.Unlock()
	out := map[string]int{}
	for text, n := range c.texts {
		out[text] = n
	}
	return out
}
