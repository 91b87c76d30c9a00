package plugin

import (
	"errors"
	"io"
	"os"
	"strings"
	"testing"
	"time"
)

// capture opens the pipe of openHandshake and returns the value that os.Stdout has then. It waits
// for the lines at the writers.
func capture(t *testing.T, out, log io.Writer) *os.File {
	t.Helper()
	before := os.Stdout
	_, err := openHandshake(out, log)
	pipe := os.Stdout
	os.Stdout = before
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = pipe.Close() })
	return pipe
}

// print writes a text to the pipe. It fails the test if the pipe is full and its reader has stopped.
func print(t *testing.T, pipe *os.File, text string) {
	t.Helper()
	done := make(chan error, 1)
	go func() {
		_, err := pipe.WriteString(text)
		done <- err
	}()
	select {
	case err := <-done:
		if err != nil {
			t.Fatal(err)
		}
	case <-time.After(10 * time.Second):
		t.Fatal("the reader of the pipe has stopped")
	}
}

const handshakeLine = "1|5|unix|/tmp/x|grpc|\n"

// A line of any length does not end the reading: code that has kept this os.Stdout would block. Of
// a long line only the beginning is logged, with the mark of a cut.
func TestStdoutIsReadForEver(t *testing.T) {
	out, log := newLogBook(), newLogBook()
	pipe := capture(t, out, log)
	print(t, pipe, "before\n"+strings.Repeat("x", 10*maxLine)+"\n"+handshakeLine+"after\n"+strings.Repeat("y", maxLine-1)+"\n"+strings.Repeat("z", 300*1024)+"\nlast\n")
	log.await(t, "last\n")
	if out.String() != handshakeLine {
		t.Errorf("handshake %q", out.String())
	}
	want := "before\n" + strings.Repeat("x", maxLine) + cutMark + "\nafter\n" + strings.Repeat("y", maxLine-1) + "\n" + strings.Repeat("z", maxLine) + cutMark + "\nlast\n"
	if got := log.String(); got != want {
		t.Errorf("logged %d bytes, want %d; begins %.40q", len(got), len(want), got)
	}
}

// broken is a Writer that always fails.
type broken struct{}

func (broken) Write([]byte) (int, error) { return 0, errors.New("broken") }

// Nor does a line that cannot be written.
func TestStdoutIsReadAlthoughItCannotBeLogged(t *testing.T) {
	out := newLogBook()
	pipe := capture(t, out, broken{})
	for range 10 {
		print(t, pipe, strings.Repeat("a line\n", 20_000))
	}
	print(t, pipe, handshakeLine)
	out.await(t, handshakeLine)
}
