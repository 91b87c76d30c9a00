package plugin

import (
	"context"
	"fmt"
	"log/slog"
	"strings"
	"testing"
	"time"
)

func TestLogLines(t *testing.T) {
	for name, test := range map[string]struct{ line, want string }{
		"plain":             {"hello", `level=INFO msg=hello stream=stderr`},
		"slog":              {`{"time":"x","level":"WARN","msg":"m","a":1}`, `level=WARN msg=m a=1`},
		"hclog":             {`{"@timestamp":"x","@level":"error","@message":"m","a":"b"}`, `level=ERROR msg=m a=b`},
		"message no string": {`{"@message":1}`, `level=INFO msg="{\"@message\":1}" stream=stderr`},
		"time no string":    {`{"msg":"m","@timestamp":1}`, `level=INFO msg=m`},
		"level no level":    {`{"msg":"m","level":{}}`, `level=INFO msg=m`},
		"broken JSON":       {`{"msg":`, `level=INFO msg="{\"msg\":" stream=stderr`},
		"panic":             {"panic: oh", `level=ERROR msg="panic: oh" stream=stderr`},
		"not UTF-8":         {"a\xffb", "level=INFO msg=\"a\uFFFDb\" stream=stderr"},
		"carriage return":   {"a\r", "level=INFO msg=a stream=stderr"},
	} {
		t.Run(name, func(t *testing.T) {
			book := newLogBook()
			newLines(book.logger(), time.Now).read(strings.NewReader(test.line+"\n\n"), "stderr")
			_, got, _ := strings.Cut(strings.TrimSpace(book.String()), " ")
			if got != test.want {
				t.Errorf("log = %s\nwant  %s", got, test.want)
			}
		})
	}
}

func TestLogLimits(t *testing.T) {
	t.Run("line", func(t *testing.T) {
		book := newLogBook()
		l := newLines(book.logger(), time.Now)
		long := strings.Repeat("x", 3*maxLine)
		l.read(strings.NewReader(long+"\nnext\n"), "stderr")
		fmt.Fprintf(l.writer("stdout"), "%s\nlast\n", long)
		text := book.String()
		if got := strings.Count(text, "cut=true"); got != 2 {
			t.Errorf("%d lines cut, want 2", got)
		}
		if got := strings.Count(text, "xx… "); got != 2 {
			t.Errorf("%d of the cut lines end in the mark of a cut", got)
		}
		if got := strings.Count(text, "x"); got > 2*maxLine+10 {
			t.Errorf("%d bytes of the long lines logged, want at most %d", got, 2*maxLine)
		}
		if !strings.Contains(text, "msg=next") || !strings.Contains(text, "msg=last") {
			t.Error("the lines after the long ones are missing")
		}
	})
	t.Run("rate", func(t *testing.T) {
		book := newLogBook()
		now := time.Unix(0, 0)
		l := newLines(book.logger(), func() time.Time { return now })
		l.read(strings.NewReader(strings.Repeat("x\n", lineBurst+500)), "stderr")
		if got := strings.Count(book.String(), "msg=x"); got != lineBurst {
			t.Errorf("%d lines logged at once, want %d", got, lineBurst)
		}
		if !strings.Contains(book.String(), "dropped=500") {
			t.Error("the dropped lines are not reported")
		}
		now = now.Add(time.Second)
		l.read(strings.NewReader(strings.Repeat("y\n", 2*lineRate)), "stderr")
		if got := strings.Count(book.String(), "msg=y"); got != lineRate {
			t.Errorf("%d lines logged a second later, want %d", got, lineRate)
		}
	})
	t.Run("pieces", func(t *testing.T) {
		book := newLogBook()
		w := newLines(book.logger(), time.Now).writer("stdout")
		for _, piece := range []string{"one ", "line\ntwo", "\n"} {
			fmt.Fprint(w, piece)
		}
		if got := book.String(); !strings.Contains(got, `msg="one line"`) || !strings.Contains(got, "msg=two") {
			t.Errorf("log = %s", got)
		}
	})
}

func TestPluginLoggerIsDebugOnly(t *testing.T) {
	book := newLogBook()
	newPluginLogger(book.logger()).Named("x").Error("odd", "a", 1)
	if book.String() != "" {
		t.Errorf("go-plugin's message is shown: %s", book)
	}
	debug := slog.New(slog.NewTextHandler(book, &slog.HandlerOptions{Level: slog.LevelDebug}))
	newPluginLogger(debug).Named("x").Error("odd", "a", 1)
	if !strings.Contains(book.String(), "level=DEBUG msg=odd a=1 source=go-plugin") {
		t.Errorf("log = %s", book)
	}
}

// A slowHandler asks for the latest lines while it is told: it can only return if
// no lock is held meanwhile.
type slowHandler struct {
	slog.Handler
	ask func()
}

func (h slowHandler) Enabled(context.Context, slog.Level) bool { return true }
func (h slowHandler) Handle(context.Context, slog.Record) error {
	h.ask()
	return nil
}

func TestDroppedLinesAreToldWithoutTheLock(t *testing.T) {
	var l *lines
	told := make(chan struct{}, 4)
	l = newLines(slog.New(slowHandler{slog.DiscardHandler, func() { l.recent(); told <- struct{}{} }}), time.Now)
	l.dropped = 3
	go l.flush()
	select {
	case <-told:
	case <-time.After(time.Minute):
		t.Fatal("the logger waits for the lock of those who log")
	}
}
