//go:build unix

package hostile

import (
	"bytes"
	"context"
	"database/sql"
	"fmt"
	"io"
	"net"
	"net/url"
	"strings"
	"sync"
	"testing"

	"github.com/lib/pq"

	"github.com/saga-engine/engine/engine/internal/pgtest"
)

// onPostgres gives a scene a database. The engines reach it through a wiretap.
func onPostgres(t *testing.T, s *scene) {
	t.Helper()
	dsn := pgtest.DSN(t)
	tap, through := newWiretap(t, dsn)
	s.env = append(s.env, "ENGINE_DSN="+through)
	s.run(t, "db", "migrate")
	s.dump = func(t *testing.T) map[string][]byte {
		t.Helper()
		return map[string][]byte{"the tables of the database": tables(t, dsn), "what was sent to the server": tap.all()}
	}
}

// tables returns each row of each table of the database, as text.
func tables(t *testing.T, dsn string) []byte {
	t.Helper()
	db, err := sql.Open("postgres", dsn)
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close() //nolint:errcheck // it was only read
	names := texts(t, db, `SELECT format('%I.%I', n.nspname, c.relname) FROM pg_class c JOIN pg_namespace n ON n.oid = c.relnamespace
		WHERE c.relkind IN ('r', 'm') AND n.nspname NOT IN ('pg_catalog', 'information_schema', 'pg_toast') ORDER BY 1`)
	var all bytes.Buffer
	for _, name := range names {
		for _, row := range texts(t, db, "SELECT t::text FROM "+name+" t") {
			fmt.Fprintf(&all, "%s %s\n", name, row)
		}
	}
	if !strings.Contains(all.String(), "engine.run ") {
		t.Errorf("the database has no runs: the test looks at the wrong things: %.200q", names)
	}
	return all.Bytes()
}

// texts returns the only column of a query.
func texts(t *testing.T, db *sql.DB, query string) (all []string) {
	t.Helper()
	if err := db.QueryRowContext(t.Context(), "SELECT array_agg(x) FROM ("+query+") q (x)").Scan(pq.Array(&all)); err != nil {
		t.Fatalf("%s: %v", query, err)
	}
	return all
}

// A wiretap passes the connections of engines to a server, and keeps all that they send. So it also
// has the rows that were removed again, notifications, and what the server could log.
type wiretap struct {
	server string

	mu   sync.Mutex // protects the field below
	sent []*bytes.Buffer
}

// newWiretap starts a wiretap, and returns the DSN that leads through it.
func newWiretap(t *testing.T, dsn string) (*wiretap, string) {
	t.Helper()
	u, err := url.Parse(dsn)
	if err != nil {
		t.Fatal(err)
	}
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	tap := &wiretap{server: u.Host}
	ctx, cancel := context.WithCancel(context.WithoutCancel(t.Context()))
	var wg sync.WaitGroup
	wg.Go(func() {
		for {
			client, err := l.Accept()
			if err != nil {
				return // the test has ended
			}
			wg.Go(func() { tap.pass(ctx, client) })
		}
	})
	t.Cleanup(func() {
		cancel()
		_ = l.Close()
		wg.Wait()
	})
	u.Host = l.Addr().String()
	return tap, u.String()
}

// pass connects a client with the server, until one of them ends or the test ends.
func (w *wiretap) pass(ctx context.Context, client net.Conn) {
	defer client.Close() //nolint:errcheck // nothing is left to send
	server, err := new(net.Dialer).DialContext(ctx, "tcp", w.server)
	if err != nil {
		return
	}
	defer server.Close() //nolint:errcheck // nothing is left to send
	stop := context.AfterFunc(ctx, func() { _, _ = client.Close(), server.Close() })
	defer stop()
	sent := &bytes.Buffer{}
	w.mu.Lock()
	w.sent = append(w.sent, sent)
	w.mu.Unlock()
	answered := make(chan struct{})
	go func() {
		defer close(answered)
		_, _ = io.Copy(client, server)
		_ = client.Close()
	}()
	_, _ = io.Copy(server, io.TeeReader(client, &guarded{w, sent}))
	_ = server.Close()
	<-answered
}

// A guarded buffer may be read while a connection writes to it.
type guarded struct {
	tap  *wiretap
	sent *bytes.Buffer
}

func (g *guarded) Write(data []byte) (int, error) {
	g.tap.mu.Lock()
	defer g.tap.mu.Unlock()
	return g.sent.Write(data)
}

// all returns what the connections have sent, one after the other.
func (w *wiretap) all() (data []byte) {
	w.mu.Lock()
	defer w.mu.Unlock()
	for _, sent := range w.sent {
		data = append(append(data, sent.Bytes()...), '\n')
	}
	return data
}
