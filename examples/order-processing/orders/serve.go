package main

import (
	"context"
	"database/sql"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"time"
)

// pollPause is the pause before the application looks for replies again after it found none.
const pollPause = 200 * time.Millisecond

// A server answers the questions of runs about orders, and receives the replies of the engines.
type server struct {
	db        *sql.DB
	stdin     io.Reader
	withStdin bool   // stop when stdin ends, so that no server outlives its parent
	ready     string // file to which the address is written; "" = none
}

// run serves until ctx ends, or until an error. If the field `withStdin` is true, it also ends when
// stdin ends.
func (s *server) run(ctx context.Context) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	if s.withStdin {
		go func() {
			// Copy returns when stdin ends or after an error. In both cases the server must stop.
			_, _ = io.Copy(io.Discard, s.stdin)
			cancel()
		}()
	}
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return fmt.Errorf("listen: %w", err)
	}
	mux := http.NewServeMux()
	mux.HandleFunc("GET /orders/{id}", s.show)
	srv := &http.Server{Handler: mux, ReadHeaderTimeout: 5 * time.Second}
	served := make(chan error, 1)
	go func() { served <- srv.Serve(l) }()
	if err := s.writeReady("http://" + l.Addr().String()); err != nil {
		return errors.Join(err, srv.Close())
	}
	err = s.listen(ctx)
	err = errors.Join(err, srv.Close())
	if end := <-served; !errors.Is(end, http.ErrServerClosed) {
		err = errors.Join(err, fmt.Errorf("serve: %w", end))
	}
	return err
}

// writeReady writes the address to the ready file. The file appears only when its content is
// complete.
func (s *server) writeReady(url string) error {
	if s.ready == "" {
		return nil
	}
	part := filepath.Join(filepath.Dir(s.ready), "."+filepath.Base(s.ready))
	if err := os.WriteFile(part, []byte(url), 0o600); err != nil {
		return fmt.Errorf("write the ready file: %w", err)
	}
	if err := os.Rename(part, s.ready); err != nil {
		return fmt.Errorf("write the ready file: %w", err)
	}
	return nil
}

// show answers with the details of an order.
func (s *server) show(w http.ResponseWriter, r *http.Request) {
	o := order{ID: r.PathValue("id")}
	err := s.db.QueryRowContext(r.Context(), `SELECT item, amount, country FROM app.orders WHERE id = $1`, o.ID).Scan(&o.Item, &o.Amount, &o.Country)
	switch {
	case errors.Is(err, sql.ErrNoRows):
		http.Error(w, "no such order", http.StatusNotFound)
	case err != nil:
		http.Error(w, "the database does not answer", http.StatusServiceUnavailable)
	default:
		w.Header().Set("Content-Type", "application/json")
		_ = json.NewEncoder(w).Encode(o) // an error means that the caller has closed the connection
	}
}

// listen receives replies until ctx ends.
func (s *server) listen(ctx context.Context) error {
	for {
		n, err := takeReplies(ctx, s.db)
		if ctx.Err() != nil {
			return nil
		}
		if err != nil {
			return err
		}
		if n > 0 {
			continue
		}
		select {
		case <-ctx.Done():
			return nil
		case <-time.After(pollPause):
		}
	}
}
