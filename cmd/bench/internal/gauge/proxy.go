package gauge

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"net"
	"sync"
	"sync/atomic"
)

// A Proxy passes the messages between an engine and its database server, and counts the statements.
// BEGIN is a statement, too. The Proxy counts an empty statement as a ping: the database driver
// sends empty statements to check the connection that executed LISTEN.
type Proxy struct {
	listener          net.Listener
	server            string
	statements, pings atomic.Int64

	wg    sync.WaitGroup
	mu    sync.Mutex // protects the field `conns`
	conns []net.Conn // all connections, from the engine and to the server
}

// Listen starts a Proxy on the loopback address. The parameter `server` is the address of the
// database server.
func Listen(server string) (*Proxy, error) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return nil, fmt.Errorf("start a proxy: %w", err)
	}
	p := &Proxy{listener: l, server: server}
	p.wg.Go(func() {
		for {
			c, err := l.Accept()
			if err != nil {
				return // the listener is closed
			}
			p.wg.Go(func() { p.serve(c) })
		}
	})
	return p, nil
}

// Address returns the address for the engine.
func (p *Proxy) Address() string { return p.listener.Addr().String() }

// Counts returns the number of statements and pings so far.
func (p *Proxy) Counts() [2]int64 { return [2]int64{p.statements.Load(), p.pings.Load()} }

// Close stops the Proxy and ends all connections.
func (p *Proxy) Close() error {
	err := p.listener.Close()
	p.mu.Lock()
	for _, c := range p.conns {
		err = errors.Join(err, ignoreClosed(c.Close()))
	}
	p.mu.Unlock()
	p.wg.Wait()
	return err
}

func ignoreClosed(err error) error {
	if errors.Is(err, net.ErrClosed) {
		return nil
	}
	return err
}

func (p *Proxy) serve(client net.Conn) {
	defer client.Close()
	server, err := net.Dial("tcp", p.server)
	if err != nil {
		return // the client sees that its connection ends
	}
	defer server.Close()
	p.mu.Lock()
	p.conns = append(p.conns, client, server)
	p.mu.Unlock()
	p.wg.Go(func() {
		defer client.Close()
		_, _ = io.Copy(client, server) // an error only means that the connection has ended
	})
	p.forward(server, client)
}

// forward passes the client's messages to the server. It also passes every message except the first
// to the method `count`. The first message of a connection has no byte for its kind, and is never a
// statement.
func (p *Proxy) forward(server io.Writer, client io.Reader) {
	head := make([]byte, 5)
	for size := 4; ; size = 5 {
		if _, err := io.ReadFull(client, head[:size]); err != nil {
			return
		}
		body := make([]byte, max(4, binary.BigEndian.Uint32(head[size-4:size]))-4)
		if _, err := io.ReadFull(client, body); err != nil {
			return
		}
		if size == 5 {
			p.count(head[0], body)
		}
		if _, err := server.Write(append(head[:size:size], body...)); err != nil {
			return
		}
	}
}

// count counts a message if it is a statement or a ping. Kind Q is a simple query, and kind E
// executes a prepared statement.
func (p *Proxy) count(kind byte, body []byte) {
	switch {
	case kind == 'Q' && len(bytes.Trim(body, "; \x00")) == 0:
		p.pings.Add(1)
	case kind == 'Q' || kind == 'E':
		p.statements.Add(1)
	}
}
