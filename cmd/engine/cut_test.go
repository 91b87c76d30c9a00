package main

import (
	"bytes"
	"encoding/binary"
	"io"
	"net"
	"net/url"
	"os"
	"sync"

	"github.com/rogpeppe/go-internal/testscript"
)

// A cutter stands before a PostgreSQL server. When a run has been committed
// through it, it cuts every connection, and lets nobody in from then on.
type cutter struct {
	listener net.Listener
	server   string
	tell     bool   // the answer to the commit still passes
	file     string // that is written when the connections are cut

	mu    sync.Mutex // protects the fields below
	conns []net.Conn
	cut   bool
	work  sync.WaitGroup
}

// cutting before|after FILE puts a cutter before the script's database: CUT_DSN
// leads through it. It cuts before, or after, the answer to the commit of a run,
// and then writes FILE.
func cutting(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) != 2 || args[0] != "before" && args[0] != "after" {
		ts.Fatalf("usage: cutting before|after FILE")
	}
	u, err := url.Parse(ts.Getenv("ENGINE_DSN"))
	ts.Check(err)
	l, err := net.Listen("tcp", "127.0.0.1:0")
	ts.Check(err)
	c := &cutter{listener: l, server: u.Host, tell: args[0] == "after", file: ts.MkAbs(args[1])}
	c.work.Go(c.serve)
	ts.Defer(func() {
		_ = l.Close()
		c.stop()
		c.work.Wait()
	})
	u.Host = l.Addr().String()
	ts.Setenv("CUT_DSN", u.String())
}

func (c *cutter) serve() {
	for {
		client, err := c.listener.Accept()
		if err != nil {
			return // closed
		}
		server, err := net.Dial("tcp", c.server)
		if err != nil || !c.keep(client, server) {
			_ = client.Close()
			continue
		}
		k := &cutLink{c: c}
		c.work.Go(func() { k.pump(client, server, false) })
		c.work.Go(func() { k.pump(server, client, true) })
	}
}

// keep remembers connections to be cut; false = they are cut already.
func (c *cutter) keep(conns ...net.Conn) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.conns = append(c.conns, conns...)
	if c.cut {
		for _, conn := range conns {
			_ = conn.Close()
		}
	}
	return !c.cut
}

func (c *cutter) stop() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.cut = true
	for _, conn := range c.conns {
		_ = conn.Close()
	}
}

// A cutLink is one connection through a cutter.
type cutLink struct {
	c *cutter

	mu     sync.Mutex // protects the fields below
	writer bool       // of a store's writer
	bound  bool       // a commit is on its way
}

// pump passes messages on, until one is the answer to a commit.
func (k *cutLink) pump(from, to net.Conn, answers bool) {
	defer from.Close()
	defer to.Close()
	for first := true; ; first = false {
		head := make([]byte, 5)
		if first && !answers { // the startup message has no kind
			head = head[:4]
		}
		if _, err := io.ReadFull(from, head); err != nil {
			return
		}
		body := make([]byte, binary.BigEndian.Uint32(head[len(head)-4:])-4)
		if _, err := io.ReadFull(from, body); err != nil {
			return
		}
		last := len(head) == 5 && k.committed(head[0], body, answers)
		if !last || k.c.tell {
			if _, err := to.Write(append(head, body...)); err != nil {
				return
			}
		}
		if last {
			_ = os.WriteFile(k.c.file, []byte("cut\n"), 0o644) // a script that waits for it says so
			k.c.stop()
			return
		}
	}
}

// committed reports whether the message says that a commit has landed. Commits of
// writers are bound to prepared statements, which have names.
func (k *cutLink) committed(kind byte, body []byte, answer bool) bool {
	k.mu.Lock()
	defer k.mu.Unlock()
	switch {
	case !answer && kind == 'Q' && bytes.Contains(body, []byte("plan_cache_mode")):
		k.writer = true
	case !answer && k.writer && kind == 'B' && body[0] == 0 && body[1] != 0:
		k.bound = true
	case answer && k.bound && kind == 'Z' && body[0] == 'I':
		return true
	}
	return false
}
