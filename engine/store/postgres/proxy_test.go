package postgres

import (
	"bytes"
	"encoding/binary"
	"errors"
	"io"
	"net"
	"net/url"
	"sync"
	"testing"
)

// A proxy stands between a store and its server and understands enough of the
// protocol to cut a connection at a chosen moment.
type proxy struct {
	listener net.Listener
	server   string

	mu    sync.Mutex // protects the fields below
	links map[*link]bool
	posts bool   // cut those of other connections than writers
	lose  *bool  // cut the next commit: after it has landed (true) or before it is sent
	then  func() // what happens before its sender can notice

	answers int // how often the server said to a writer that it is done
}

// A link is one connection through the proxy.
type link struct {
	p              *proxy
	client, server net.Conn

	// Guarded by p.mu.
	writer bool // of a store's writer
	bound  bool // a commit is on its way
	mute   bool // nothing passes any more, and nobody is told
}

// newProxy starts a proxy and returns the DSN that leads through it.
func newProxy(t *testing.T, dsn string) (*proxy, string) {
	t.Helper()
	u, err := url.Parse(dsn)
	if err != nil {
		t.Fatal(err)
	}
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	p := &proxy{listener: l, server: u.Host, links: make(map[*link]bool)}
	var wg sync.WaitGroup
	wg.Go(func() {
		for {
			c, err := l.Accept()
			if err != nil {
				return // closed
			}
			wg.Go(func() { p.serve(c) })
		}
	})
	t.Cleanup(func() {
		l.Close()
		p.cut(func(*link) bool { return true })
		wg.Wait()
	})
	u.Host = l.Addr().String()
	return p, u.String()
}

func (p *proxy) serve(c net.Conn) {
	s, err := net.Dial("tcp", p.server)
	if err != nil {
		c.Close()
		return
	}
	k := &link{p: p, client: c, server: s}
	p.mu.Lock()
	p.links[k] = true
	p.mu.Unlock()
	var wg sync.WaitGroup
	wg.Go(func() { k.pump(c, s, false, k.fromClient) })
	wg.Go(func() { k.pump(s, c, true, k.fromServer) })
	wg.Wait()
	p.mu.Lock()
	delete(p.links, k)
	p.mu.Unlock()
}

func (k *link) close() {
	k.client.Close()
	k.server.Close()
}

var errCut = errors.New("cut")

// pump forwards messages that see lets through.
func (k *link) pump(from, to net.Conn, typed bool, see func(kind byte, body []byte) error) {
	defer k.close()
	for first := true; ; first = false {
		head := make([]byte, 5)
		if first && !typed { // the startup message has no kind
			head = head[:4]
		}
		if _, err := io.ReadFull(from, head); err != nil {
			return
		}
		body := make([]byte, binary.BigEndian.Uint32(head[len(head)-4:])-4)
		if _, err := io.ReadFull(from, body); err != nil {
			return
		}
		kind := byte(0)
		if len(head) == 5 {
			kind = head[0]
		}
		if see(kind, body) != nil {
			return
		}
		if k.muted() {
			continue
		}
		if _, err := to.Write(append(head, body...)); err != nil {
			return
		}
	}
}

func (k *link) fromClient(kind byte, body []byte) error {
	k.p.mu.Lock()
	defer k.p.mu.Unlock()
	if kind == 'Q' && bytes.Contains(body, []byte("plan_cache_mode")) {
		k.writer = true
		return nil
	}
	if k.p.posts && kind == 'Q' && bytes.HasPrefix(body, []byte("COMMIT")) {
		k.bound = true
		if k.p.lose != nil && !*k.p.lose {
			return k.p.cutLocked()
		}
	}
	if !k.writer || k.p.posts {
		return nil
	}
	// Commits are bound to prepared statements, which have names.
	prepared := kind == 'B' && body[0] == 0 && body[1] != 0
	k.bound = k.bound || prepared || kind == 'Q' && bytes.HasPrefix(body, []byte("COMMIT"))
	if prepared && k.p.lose != nil && !*k.p.lose {
		return k.p.cutLocked()
	}
	return nil
}

// fromServer sees ReadyForQuery outside a transaction after a commit: by then
// the server has committed, and everything but this message has been forwarded.
func (k *link) fromServer(kind byte, body []byte) error {
	k.p.mu.Lock()
	defer k.p.mu.Unlock()
	if kind == 'Z' && k.writer {
		k.p.answers++
	}
	if kind == 'E' { // nothing landed
		k.bound = false
	}
	if kind != 'Z' || body[0] != 'I' || !k.bound {
		return nil
	}
	k.bound = false
	if k.p.lose != nil && *k.p.lose {
		return k.p.cutLocked()
	}
	return nil
}

func (k *link) muted() bool {
	k.p.mu.Lock()
	defer k.p.mu.Unlock()
	return k.mute
}

// silence lets nothing pass on the present connections any more, as when a
// network forgets them.
func (p *proxy) silence() {
	p.mu.Lock()
	defer p.mu.Unlock()
	for k := range p.links {
		k.mute = true
	}
}

// loseNext arms the proxy.
func (p *proxy) loseNext(landed bool, then func()) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.lose, p.then = &landed, then
}

func (p *proxy) cutLocked() error {
	p.lose = nil
	p.then()
	return errCut
}

// cut breaks connections now. The server's side is left open for a writer at
// work, as after a partition: closing it would not stop the backend either.
func (p *proxy) cut(which func(*link) bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	for k := range p.links {
		if which(k) {
			k.close()
		}
	}
}
