package plugin

import (
	"bufio"
	"bytes"
	"io"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
)

// realStdout is where the handshake goes, and the description. From here on
// os.Stdout is standard error in a process that is an agent, so that whatever
// the author's packages print while they start becomes a log line instead of a
// broken handshake. It must happen before any other package of the agent runs,
// hence a variable and not a call in Serve. A host that imports this package is
// left alone.
var realStdout = guardStdout()

func guardStdout() *os.File {
	stdout := os.Stdout
	name := filepath.Base(os.Args[0])
	if os.Getenv(cookieName) != "" || strings.HasPrefix(name, "engine-agent-") {
		os.Stdout = os.Stderr
	}
	return stdout
}

// openHandshake gives go-plugin an os.Stdout to write its handshake to. Only the
// handshake line reaches out; whatever others print at that moment goes to log.
// sent tells whether the handshake was written.
func openHandshake(out, log io.Writer) (sent *atomic.Bool, err error) {
	r, w, err := os.Pipe()
	if err != nil {
		return nil, err
	}
	os.Stdout = w
	sent = new(atomic.Bool)
	// Ends with the process: other code may have kept the old os.Stdout.
	go func() {
		for scanner := bufio.NewScanner(r); scanner.Scan(); {
			line := append(scanner.Bytes(), '\n')
			to := log
			if isHandshake(line) && sent.CompareAndSwap(false, true) {
				to = out
			}
			if _, err := to.Write(line); err != nil {
				return
			}
		}
	}()
	return sent, nil
}

// isHandshake recognises go-plugin's line: core version, protocol version,
// network, address, "grpc" and so on.
func isHandshake(line []byte) bool {
	parts := bytes.Split(bytes.TrimSpace(line), []byte("|"))
	return len(parts) >= 5 && string(parts[0]) == "1" && string(parts[4]) == "grpc"
}
