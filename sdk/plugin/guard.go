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

// realStdout is the standard output for the handshake and the description. In an agent
// process, os.Stdout is replaced by standard error. So the output of the author's packages
// during their initialization becomes log lines and does not break the handshake. This
// must happen before any other package of the agent runs. So the initialization of this
// variable does it, and not a call in Serve. In a host nothing is replaced.
var realStdout = guardStdout()

func guardStdout() *os.File {
	stdout := os.Stdout
	name := filepath.Base(os.Args[0])
	if os.Getenv(cookieName) != "" || strings.HasPrefix(name, "engine-agent-") {
		os.Stdout = os.Stderr
	}
	return stdout
}

// openHandshake replaces os.Stdout by a pipe, to which go-plugin writes its handshake. It
// passes only the handshake line to out, and all other lines to log. sent reports whether
// the handshake line was passed to out.
func openHandshake(out, log io.Writer) (sent *atomic.Bool, err error) {
	r, w, err := os.Pipe()
	if err != nil {
		return nil, err
	}
	os.Stdout = w
	sent = new(atomic.Bool)
	// This goroutine ends with the process, because other code may keep this os.Stdout and
	// write to it at any time.
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

// isHandshake recognizes go-plugin's line. It contains the core version, protocol version,
// network, address, "grpc" and so on.
func isHandshake(line []byte) bool {
	parts := bytes.Split(bytes.TrimSpace(line), []byte("|"))
	return len(parts) >= 5 && string(parts[0]) == "1" && string(parts[4]) == "grpc"
}
