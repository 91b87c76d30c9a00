package plugin

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"io"
	"log/slog"
	"strings"
	"sync"
	"time"

	"github.com/hashicorp/go-hclog"
)

// Limits for the log of an agent. Lines longer than maxLine bytes are cut. If there are more
// lines than lineRate and lineBurst allow, lines are dropped and counted.
const (
	maxLine   = 64 << 10
	lineRate  = 200  // largest average number of lines per second
	lineBurst = 1000 // largest number of lines that are logged without a pause
	maxTail   = 20   // number of lines that are kept for an error message

	maxTailLine = 500 // a line that is kept for an error message is cut after this many bytes
)

// cutMark is appended to a text that was cut. A cut text may end with the first part of a secret.
// The code that removes secrets also finds such a part, because it is followed by cutMark.
const cutMark = "…"

// shortened returns a text of at most `most` bytes unchanged. It cuts a longer text after `most`
// bytes and appends cutMark.
func shortened(text string, most int) string {
	if len(text) <= most {
		return text
	}
	return strings.ToValidUTF8(text[:most], "�") + cutMark
}

// lines logs an agent's output. It parses JSON lines in the formats of slog and hclog, and
// logs every other line as a message.
type lines struct {
	logger *slog.Logger
	now    func() time.Time

	mu      sync.Mutex // protects the fields below
	tokens  float64    // number of lines that may be logged now
	last    time.Time  // time of the last change of the field `tokens`
	dropped int        // number of lines dropped since the last report
	tail    []string   // the latest lines, for error messages
	panicks bool       // the agent has begun to print a Go panic
}

func newLines(logger *slog.Logger, now func() time.Time) *lines {
	return &lines{logger: logger, now: now, tokens: lineBurst, last: now()}
}

// read logs every line of r until r ends. It ignores the error of r.
func (l *lines) read(r io.Reader, stream string) {
	br := bufio.NewReaderSize(r, maxLine)
	for continued := false; ; {
		line, more, err := br.ReadLine()
		if err != nil {
			l.flush()
			return
		}
		if !continued {
			l.log(line, stream, more)
		}
		continued = more
	}
}

// writer returns a Writer that logs whole lines. After the handshake, go-plugin writes the output
// of the agent to this Writer, in pieces.
func (l *lines) writer(stream string) io.Writer { return &lineWriter{lines: l, stream: stream} }

type lineWriter struct {
	lines  *lines
	stream string
	buf    []byte
	cut    bool
}

// Write logs the complete lines and keeps the rest for the next call. It never fails. It is
// not safe for concurrent use.
func (w *lineWriter) Write(p []byte) (int, error) {
	for rest := p; len(rest) > 0; {
		line, after, complete := bytes.Cut(rest, []byte("\n"))
		left := maxLine - len(w.buf)
		w.cut = w.cut || len(line) > left
		w.buf = append(w.buf, line[:min(len(line), left)]...)
		if complete {
			w.lines.log(w.buf, w.stream, w.cut)
			w.buf, w.cut = w.buf[:0], false
		}
		rest = after
	}
	return len(p), nil
}

func (l *lines) log(line []byte, stream string, cut bool) {
	line = bytes.TrimRight(line, "\r")
	if len(line) == 0 || !l.admit(line) {
		return
	}
	level, message, attrs := parseLine(line)
	if message == "" {
		message = strings.ToValidUTF8(string(line), "�")
		if cut {
			message += cutMark
		}
		attrs = append(attrs, slog.String("stream", stream))
		level = l.plainLevel(line)
	}
	if cut {
		attrs = append(attrs, slog.Bool("cut", true))
	}
	l.logger.LogAttrs(context.Background(), level, message, attrs...) // no context: the line came through a pipe
}

// admit reports whether a line may be logged. It returns false if there were too many lines in a
// short time: see lineRate and lineBurst. In both cases it keeps the line for error messages.
func (l *lines) admit(line []byte) bool {
	ok, dropped := l.take(line)
	l.report(dropped)
	return ok
}

// take does the work of admit, but does not log how many lines were dropped. The result `dropped`
// is the number of dropped lines that the caller must report. If `ok` is false, `dropped` is 0.
func (l *lines) take(line []byte) (ok bool, dropped int) {
	l.mu.Lock()
	defer l.mu.Unlock()
	now := l.now()
	l.tokens = min(lineBurst, l.tokens+now.Sub(l.last).Seconds()*lineRate)
	l.last = now
	l.tail = append(l.tail, shortened(string(line), maxTailLine))
	if len(l.tail) > maxTail {
		l.tail = append(l.tail[:0], l.tail[1:]...)
	}
	if l.tokens < 1 {
		l.dropped++
		return false, 0
	}
	l.tokens--
	dropped, l.dropped = l.dropped, 0
	return true, dropped
}

// report logs how many lines were dropped, if any were. The caller must not hold l.mu: a
// logger may be slow, and the method `recent` must not wait for the logger.
func (l *lines) report(dropped int) {
	if dropped > 0 {
		l.logger.Warn("agent logs too much; lines dropped", "dropped", dropped)
	}
}

func (l *lines) flush() {
	l.mu.Lock()
	dropped := l.dropped
	l.dropped = 0
	l.mu.Unlock()
	l.report(dropped)
}

// plainLevel returns the log level for a line that is not JSON. A Go panic and all lines
// after it have the level error. Other lines have the level info.
func (l *lines) plainLevel(line []byte) slog.Level {
	l.mu.Lock()
	defer l.mu.Unlock()
	if bytes.HasPrefix(line, []byte("panic: ")) || bytes.HasPrefix(line, []byte("fatal error: ")) {
		l.panicks = true
	}
	if l.panicks {
		return slog.LevelError
	}
	return slog.LevelInfo
}

// recent returns the latest lines, for an error message.
func (l *lines) recent() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return strings.ToValidUTF8(strings.Join(l.tail, "\n"), "�")
}

// parseLine returns the level, message and attributes of a JSON log line. The result `message`
// is "" if the line is not a JSON log line. parseLine checks the types of all values, because
// the line comes from another process.
func parseLine(line []byte) (level slog.Level, message string, attrs []slog.Attr) {
	if line[0] != '{' {
		return 0, "", nil
	}
	var fields map[string]any
	if err := json.Unmarshal(line, &fields); err != nil {
		return 0, "", nil
	}
	message = take(fields, slog.MessageKey, "@message")
	levelText := take(fields, slog.LevelKey, "@level")
	take(fields, slog.TimeKey, "@timestamp")
	if strings.EqualFold(levelText, "trace") {
		levelText = "debug"
	}
	if err := level.UnmarshalText([]byte(levelText)); err != nil {
		level = slog.LevelInfo
	}
	for key, value := range fields {
		attrs = append(attrs, slog.Any(key, value))
	}
	return level, message, attrs
}

// take removes the given keys from the map `fields`. It returns the value of the first key whose
// value is a string; "" if there is no such key.
func take(fields map[string]any, keys ...string) string {
	text := ""
	for _, key := range keys {
		if s, ok := fields[key].(string); ok && text == "" {
			text = s
		}
		delete(fields, key)
	}
	return text
}

// pluginLog passes go-plugin's own log messages to a slog.Logger at debug level. The level
// debug is enough, because the errors and outcomes of this package already contain the
// important messages.
type pluginLog struct{ logger *slog.Logger }

var _ hclog.SinkAdapter = pluginLog{}

// Accept logs one message.
func (p pluginLog) Accept(_ string, _ hclog.Level, msg string, args ...any) {
	p.logger.Debug(msg, append(args, "source", "go-plugin")...)
}

func newPluginLogger(logger *slog.Logger) hclog.Logger {
	l := hclog.NewInterceptLogger(&hclog.LoggerOptions{Output: io.Discard, Level: hclog.Debug})
	l.RegisterSink(pluginLog{logger})
	return l
}

// firstLine is a Reader that keeps the first line that is read from it, for error messages.
type firstLine struct {
	io.Reader
	mu   sync.Mutex // protects the fields below
	line []byte     // beginning of the first line, as far as it was read
	done bool       // the first line is complete, or has maxFirstLine bytes
}

const maxFirstLine = 8 << 10

// Read reads from the inner Reader and keeps the first line.
func (f *firstLine) Read(p []byte) (int, error) {
	n, err := f.Reader.Read(p)
	f.mu.Lock()
	defer f.mu.Unlock()
	if !f.done {
		line, _, complete := bytes.Cut(p[:n], []byte("\n"))
		f.line = append(f.line, line[:min(len(line), maxFirstLine-len(f.line))]...)
		f.done = complete || len(f.line) == maxFirstLine || errors.Is(err, io.EOF)
	}
	return n, err
}

func (f *firstLine) text() string {
	f.mu.Lock()
	defer f.mu.Unlock()
	return strings.TrimSpace(string(f.line))
}
