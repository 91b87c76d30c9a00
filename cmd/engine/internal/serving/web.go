package serving

import (
	"context"
	"errors"
	"io"
	"log/slog"
	"net"
	"net/http"
	"time"

	"github.com/saga-engine/engine/cmd/engine/internal/cli"
)

// A webServer answers HTTP requests of a monitoring system about this engine. It shows no runs and
// changes nothing.
type webServer struct {
	listener net.Listener
	server   *http.Server
}

// listenWeb opens the port of --http. Later, the method `run` answers requests on it. The function
// `ready` returns an error that says why the engine is not ready for work; nil = it is ready.
func listenWeb(address string, metrics http.Handler, ready func() error) (*webServer, error) {
	listener, err := net.Listen("tcp", address)
	if err != nil {
		return nil, cli.Failed("Cannot listen", "--http %s: %s.", address, err)
	}
	mux := http.NewServeMux()
	mux.Handle("GET /metrics", metrics)
	mux.HandleFunc("GET /healthz", func(w http.ResponseWriter, _ *http.Request) { writeLine(w, http.StatusOK, "ok") })
	mux.HandleFunc("GET /readyz", func(w http.ResponseWriter, _ *http.Request) {
		if err := ready(); err != nil {
			writeLine(w, http.StatusServiceUnavailable, err.Error())
			return
		}
		writeLine(w, http.StatusOK, "ok")
	})
	return &webServer{listener: listener, server: &http.Server{
		Handler: mux, ReadHeaderTimeout: 5 * time.Second, ReadTimeout: 10 * time.Second, WriteTimeout: 30 * time.Second,
		IdleTimeout: time.Minute, MaxHeaderBytes: 16 << 10,
	}}, nil
}

// writeLine answers a request with a line of text.
func writeLine(w http.ResponseWriter, status int, text string) {
	w.Header().Set("Content-Type", "text/plain; charset=utf-8")
	w.Header().Set("X-Content-Type-Options", "nosniff")
	w.WriteHeader(status)
	_, _ = io.WriteString(w, text+"\n") // fails only if the client has closed the connection
}

// address returns the address on which the server listens.
func (s *webServer) address() string { return s.listener.Addr().String() }

// run is the method that answers requests until the method `close` is called.
func (s *webServer) run(log *slog.Logger) {
	s.server.ErrorLog = slog.NewLogLogger(log.Handler(), slog.LevelDebug)
	if err := s.server.Serve(s.listener); err != nil && !errors.Is(err, http.ErrServerClosed) {
		log.Error("answer on --http", "error", err)
	}
}

// close ends the server. Requests in flight have one second to end.
func (s *webServer) close(ctx context.Context) {
	ctx, cancel := context.WithTimeout(ctx, time.Second)
	defer cancel()
	if s.server.Shutdown(ctx) != nil {
		_ = s.server.Close() // ends the requests that are still in flight
	}
	// If the method `run` was called, the server has closed the listener already.
	_ = s.listener.Close()
}
