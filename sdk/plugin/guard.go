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

// realStdout is the process's original standard output, for the handshake and the description. In
// an agent process, guardStdout replaces os.Stdout by standard error. So lines that the author's
// packages print during their initialization become log lines, and do not break the handshake.
// guardStdout is called here and not in Serve, because Serve runs after the initialization of all
// packages. In a host, guardStdout replaces nothing.
var realStdout = guardStdout()

func guardStdout() *os.File {
	stdout := os.Stdout
	name := filepath.Base(os.Args[0])
	if os.Getenv(cookieName) != "" || strings.HasPrefix(name, "engine-agent-") {
		os.Stdout = os.Stderr
	}
	return stdout
}

// openHandshake replaces os.Stdout by a pipe, to which go-plugin writes its handshake. A goroutine
// reads the pipe. The goroutine writes the handshake line to the parameter `out`, and all other
// lines to the parameter `log`. The result `sent` becomes true when the goroutine begins to write
// the handshake line.
func openHandshake(out, log io.Writer) (sent *atomic.Bool, err error) {
	r, w, err := os.Pipe()
	if err != nil {
		return nil, err
	}
	os.Stdout = w
	sent = new(atomic.Bool)
	go readStdout(r, out, log, sent)
	return sent, nil
}

// readStdout reads the pipe of openHandshake until the pipe ends, which is usually the end of the
// process. Other code may have kept the present value of os.Stdout and may write to it at any time.
// This code would block if no goroutine read the pipe. So readStdout reads on after a long line, of
// which it logs only the first maxLine bytes, and after a line that it could not write.
func readStdout(r io.Reader, out, log io.Writer, sent *atomic.Bool) {
	br := bufio.NewReaderSize(r, maxLine)
	var line []byte
	for continued := false; ; {
		part, more, err := br.ReadLine()
		if err != nil {
			return
		}
		if !continued {
			line = append(line[:0], part...)
			if more {
				line = append(line, cutMark...)
			}
			line = append(line, '\n')
			to := log
			if isHandshake(line) && sent.CompareAndSwap(false, true) {
				to = out
			}
			_, _ = to.Write(line) // after an error, later lines may still be written
		}
		continued = more
	}
}

// isHandshake reports whether a line is go-plugin's handshake. Such a line contains the core
// version, protocol version, network, address, "grpc" and more, separated by "|".
func isHandshake(line []byte) bool {
	parts := bytes.Split(bytes.TrimSpace(line), []byte("|"))
	return len(parts) >= 5 && string(parts[0]) == "1" && string(parts[4]) == "grpc"
}
