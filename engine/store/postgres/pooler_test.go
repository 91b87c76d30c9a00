package postgres

import (
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"io"
	"log/slog"
	"net"
	"net/url"
	"strings"
	"sync"
	"testing"

	"github.com/saga-engine/engine/engine/internal/pgtest"
	"github.com/saga-engine/engine/engine/machine/status"
	"github.com/saga-engine/engine/engine/store"
	"github.com/saga-engine/engine/engine/store/health"
	"github.com/saga-engine/engine/engine/store/naming"
	"github.com/saga-engine/engine/engine/store/storetest"
)

// A pooler hands a server's connection to a client for one transaction, as
// poolers in transaction mode do. It logs in for its clients by passing the
// first one's handshake on; later clients are let in with what the server told
// the first one.
type pooler struct {
	t        testing.TB
	server   string
	listener net.Listener

	mu      sync.Mutex // protects the fields below
	freed   *sync.Cond
	idle    []net.Conn // last in, first out
	open    int
	closed  bool
	clients map[net.Conn]bool
}

const poolSize = 6

// newPooler starts a pooler and returns the DSN that leads through it. Its
// clients need no password.
func newPooler(t testing.TB, dsn string) string {
	t.Helper()
	u, err := url.Parse(dsn)
	if err != nil {
		t.Fatal(err)
	}
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	p := &pooler{t: t, server: u.Host, listener: l, clients: make(map[net.Conn]bool)}
	p.freed = sync.NewCond(&p.mu)
	var wg sync.WaitGroup
	wg.Go(func() {
		for {
			c, err := l.Accept()
			if err != nil {
				return // closed
			}
			p.mu.Lock()
			p.clients[c] = true
			p.mu.Unlock()
			wg.Go(func() {
				defer p.gone(c)
				// A client that leaves in the middle ends with an error nobody needs.
				_ = p.serve(c, dsn)
			})
		}
	})
	t.Cleanup(func() {
		l.Close()
		p.mu.Lock()
		p.closed = true
		for c := range p.clients {
			c.Close()
		}
		for _, s := range p.idle {
			s.Close()
		}
		p.freed.Broadcast()
		p.mu.Unlock()
		wg.Wait()
	})
	u.Host = l.Addr().String()
	return u.String()
}

func (p *pooler) gone(c net.Conn) {
	c.Close()
	p.mu.Lock()
	defer p.mu.Unlock()
	delete(p.clients, c)
}

var errPoolerClosed = errors.New("pooler closed")

// take returns a connection of the server, a new one if there is room.
func (p *pooler) take(dsn string) (net.Conn, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	for {
		switch {
		case p.closed:
			return nil, errPoolerClosed
		case len(p.idle) > 0:
			s := p.idle[len(p.idle)-1]
			p.idle = p.idle[:len(p.idle)-1]
			return s, nil
		case p.open < poolSize:
			s, err := login(p.server, dsn)
			if err == nil {
				p.open++
			}
			return s, err
		}
		p.freed.Wait()
	}
}

// put gives a connection back, or forgets a broken one.
func (p *pooler) put(s net.Conn, whole bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if whole && !p.closed {
		p.idle = append(p.idle, s)
	} else {
		s.Close()
		p.open--
	}
	p.freed.Signal()
}

// serve answers one client's startup and then lends it a connection for each
// transaction.
func (p *pooler) serve(c net.Conn, dsn string) error {
	if _, err := readStartup(c); err != nil {
		return err
	}
	hello := message('R', 0, 0, 0, 0) // no password wanted
	for _, kv := range []string{"server_version\x0015.0\x00", "client_encoding\x00UTF8\x00", "TimeZone\x00UTC\x00", "standard_conforming_strings\x00on\x00"} {
		hello = append(hello, message('S', []byte(kv)...)...)
	}
	hello = append(hello, message('K', 0, 0, 0, 1, 0, 0, 0, 1)...)
	hello = append(hello, message('Z', 'I')...)
	if _, err := c.Write(hello); err != nil {
		return err
	}
	for {
		first, err := readMessage(c)
		if err != nil || first[0] == 'X' {
			return err
		}
		s, err := p.take(dsn)
		if err != nil {
			return err
		}
		err = lend(c, s, first)
		p.put(s, err == nil)
		if err != nil {
			return err
		}
	}
}

// lend passes messages on until the server is outside of a transaction.
func lend(c, s net.Conn, next []byte) error {
	for {
		for ; ; next = nil { // what the client says, up to Sync or a query
			if next == nil {
				var err error
				if next, err = readMessage(c); err != nil {
					return err
				}
			}
			if _, err := s.Write(next); err != nil {
				return err
			}
			if next[0] == 'S' || next[0] == 'Q' {
				break
			}
			if next[0] == 'X' {
				return io.EOF
			}
		}
		next = nil
		for {
			m, err := readMessage(s)
			if err != nil {
				return err
			}
			if _, err := c.Write(m); err != nil {
				return err
			}
			if m[0] == 'Z' {
				if m[5] == 'I' {
					return nil
				}
				break
			}
		}
	}
}

// login makes a connection of the server's by itself: the startup and password
// messages of one that the driver makes are passed on to it.
func login(server, dsn string) (net.Conn, error) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return nil, err
	}
	defer l.Close()
	u, err := url.Parse(dsn)
	if err != nil {
		return nil, err
	}
	u.Host = l.Addr().String()
	go func() {
		src, err := parse(u.String())
		if err != nil {
			return
		}
		c, err := src.connector(dialer{})
		if err != nil {
			return
		}
		conn, err := c.Connect(context.Background())
		if err == nil {
			conn.Close() // it is ours now
		}
	}()
	c, err := l.Accept()
	if err != nil {
		return nil, err
	}
	s, err := net.Dial("tcp", server)
	if err != nil {
		return nil, errors.Join(err, c.Close())
	}
	start, err := readStartup(c)
	if err == nil {
		_, err = s.Write(start)
	}
	for err == nil {
		var m []byte
		if m, err = readMessage(s); err != nil {
			break
		}
		if _, err = c.Write(m); err != nil || m[0] == 'Z' {
			break
		}
		if kind := binary.BigEndian.Uint32(m[5:9]); m[0] == 'R' && kind != 0 && kind != 12 {
			if m, err = readMessage(c); err == nil {
				_, err = s.Write(m)
			}
		}
	}
	return s, errors.Join(err, c.Close())
}

func message(kind byte, body ...byte) []byte {
	return append(binary.BigEndian.AppendUint32([]byte{kind}, uint32(len(body)+4)), body...)
}

func readStartup(c net.Conn) ([]byte, error) {
	head := make([]byte, 4)
	if _, err := io.ReadFull(c, head); err != nil {
		return nil, err
	}
	body := make([]byte, binary.BigEndian.Uint32(head)-4)
	_, err := io.ReadFull(c, body)
	return append(head, body...), err
}

func readMessage(c net.Conn) ([]byte, error) {
	head := make([]byte, 5)
	if _, err := io.ReadFull(c, head); err != nil {
		return nil, err
	}
	body := make([]byte, binary.BigEndian.Uint32(head[1:])-4)
	_, err := io.ReadFull(c, body)
	return append(head, body...), err
}

// A pooler in transaction mode is found and named once; engines go on without
// anything that a session remembers (T26).
func TestPooler(t *testing.T) {
	dsn := pgtest.DSN(t)
	through := newPooler(t, dsn)
	if _, to, err := Migrate(t.Context(), through); err != nil || to != schemaVersion {
		t.Fatalf("migrate: to %d, err = %v", to, err)
	}
	var log bytes.Buffer
	s, err := Open(t.Context(), through, Options{Logger: slog.New(slog.NewTextHandler(&log, nil))})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { s.Close() })
	if !s.pooled.Load() || strings.Count(log.String(), "pooler in transaction mode") != 1 {
		t.Fatalf("pooled = %v, log = %s, want it found and said once", s.pooled.Load(), log.String())
	}
	if direct := open(t, dsn); direct.pooled.Load() {
		t.Error("a pooler is seen where none is")
	}
	found, err := s.Examine(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range found {
		if f.Name == "pooler" && f.Level != health.Warning {
			t.Errorf("%+v, want a warning", f)
		}
	}
	// Several engines at once: were anything kept in a session, it would be met
	// by another.
	var wg sync.WaitGroup
	for n := range 4 {
		b := benchOn(t, s)
		wg.Go(func() {
			for i := range 20 {
				run := status.RunID(1 + n*100 + i)
				if _, err := storetest.Submit(t.Context(), b.w, b.create(run), naming.Names{}); err != nil {
					t.Errorf("submit: %v", err)
					return
				}
				if _, err := b.Post(t.Context(), store.Message{Run: run, Kind: store.MessageVerb}); err != nil {
					t.Errorf("post: %v", err)
				}
				if err := b.commit(t.Context(), store.Transition{Run: run, Seq: 1, At: at, Data: []byte("1")}); err != nil {
					t.Errorf("commit: %v", err)
				}
				if err := b.commit(t.Context(), store.Transition{Run: run, Seq: 1, At: at, Data: []byte("2")}); !errors.Is(err, store.ErrStale) {
					t.Errorf("a stale commit: err = %v, want ErrStale", err)
				}
				if loaded, err := b.Load(t.Context(), run); err != nil || len(loaded) != 1 || len(loaded[0].Rows) != 2 {
					t.Errorf("loaded = %+v, err = %v, want one run of 2 rows", loaded, err)
				}
			}
			if tick, err := b.Tick(t.Context(), b.id, 1<<40, 100); err != nil || len(tick.Inbox) != 20 {
				t.Errorf("tick = %+v, err = %v, want 20 runs with a message", tick, err)
			}
		})
	}
	wg.Wait()
	var held int
	if err := raw(t, dsn).QueryRow(`SELECT count(*) FROM pg_locks WHERE locktype = 'advisory'
AND database = (SELECT oid FROM pg_database WHERE datname = current_database())`).Scan(&held); err != nil || held != 0 {
		t.Errorf("%d advisory locks are held, err = %v, want none", held, err)
	}
}

// openPooled opens a Store that knows of the pooler. Other tests use the pooler at
// the same time, and may happen to leave both sessions their backends all along; a
// Store finds out by an error then.
func openPooled(t testing.TB, through string) *Store {
	t.Helper()
	for range 5 {
		if s := open(t, through); s.pooled.Load() {
			return s
		}
	}
	t.Fatal("the pooler was not found")
	return nil
}
