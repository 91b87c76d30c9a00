package cli

import (
	"context"
	"io"
	"log/slog"
	"strings"
	"sync"
	"time"

	"github.com/saga-engine/engine/dsl/diag"
	"github.com/saga-engine/engine/engine/machine/status"
)

// logLevel converts the value of --log to a log level. For "" the level is warn: the log then
// shows only warnings and errors.
func logLevel(name string) (slog.Level, error) {
	switch strings.ToLower(name) {
	case "", "warn", "warning":
		return slog.LevelWarn, nil
	case "error":
		return slog.LevelError, nil
	case "info":
		return slog.LevelInfo, nil
	case "debug":
		return slog.LevelDebug, nil
	}
	return 0, Failed("Invalid flag", "--log (or ENGINE_LOG) must be error, warn, info or debug, not %q.%s",
		name, diag.DidYouMean(name, []string{"error", "warn", "info", "debug"}))
}

// A sink receives the log lines and writes them to stderr. While a view draws the screen, the
// sink writes them to the view.
type sink struct {
	mu sync.Mutex // protects the field `to`
	to io.Writer
}

// Write writes one log line.
func (s *sink) Write(b []byte) (int, error) {
	s.mu.Lock()
	to := s.to
	s.mu.Unlock()
	return to.Write(b)
}

// Set changes the writer to which the sink writes later lines.
func (s *sink) Set(to io.Writer) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.to = to
}

// Logger returns the logger of this invocation. The logger quotes control characters, so that no
// value in a line can look like another line.
func (a *App) Logger() *slog.Logger {
	if a.slog == nil {
		a.Sink = &sink{to: a.Stderr}
		level, _ := logLevel(a.LogLevel) // Prepare has checked the level
		a.Runs = &runNames{names: map[status.RunID]string{}}
		a.slog = slog.New(runHandler{slog.NewTextHandler(a.Sink, &slog.HandlerOptions{Level: level, ReplaceAttr: a.Runs.public}), a.Runs})
	}
	return a.slog
}

// ServeLogger sets up the logger of a server. With --json the logger writes one JSON object on
// each line of stdout. Each object has the fields that all JSON streams have.
func (a *App) ServeLogger() {
	a.Logger()
	if !a.JSON {
		return
	}
	level, _ := logLevel(a.LogLevel) // Prepare has checked the level
	a.Sink.Set(a.Stdout)
	a.Stream = logStream{a}
	a.slog = slog.New(slog.NewJSONHandler(a.Sink, &slog.HandlerOptions{Level: level, ReplaceAttr: a.envelope})).With("@module", "engine", "type", "log")
}

// envelope renames the fields of a log line to the names that all JSON streams use, such as
// @timestamp.
func (a *App) envelope(groups []string, attr slog.Attr) slog.Attr {
	if len(groups) > 0 {
		return attr
	}
	switch attr.Key {
	case slog.TimeKey:
		return slog.String("@timestamp", attr.Value.Time().UTC().Format(time.RFC3339Nano))
	case slog.LevelKey:
		return slog.String("@level", strings.ToLower(attr.Value.String()))
	case slog.MessageKey:
		return slog.String("@message", attr.Value.String())
	}
	return a.Runs.public(groups, attr)
}

// logStream writes diagnostics as log lines of a server with --json.
type logStream struct{ a *App }

// Diagnostics writes each diagnostic on one line.
func (s logStream) Diagnostics(diags diag.Diagnostics) {
	for _, d := range diags {
		level := slog.LevelError
		if d.Severity == diag.SeverityWarning {
			level = slog.LevelWarn
		}
		s.a.slog.Log(context.Background(), level, d.Error(), "diagnostic", d)
	}
}
