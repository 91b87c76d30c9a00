// Command ledger runs the remote service of fault tests. It prints the URL of the service, and
// ends at the end of its standard input.
package main

import (
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"

	"github.com/saga-engine/engine/engine/internal/chaos/ledger"
)

func main() {
	if err := run(); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

func run() error {
	if len(os.Args) != 2 {
		return errors.New("usage: ledger FILE")
	}
	l, err := ledger.Open(os.Args[1])
	if err != nil {
		return err
	}
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return err
	}
	fmt.Printf("http://%s\n", listener.Addr())
	server := &http.Server{Handler: ledger.Handler(l)}
	go func() {
		_, _ = io.Copy(io.Discard, os.Stdin) // only the end of the input matters
		server.Close()
	}()
	if err := server.Serve(listener); !errors.Is(err, http.ErrServerClosed) {
		return err
	}
	return l.Close()
}
