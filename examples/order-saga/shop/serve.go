package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"time"
)

// serve answers requests until ctx ends. With --with-stdin it also ends when `stdin` ends. So the
// shop ends together with the process that started it.
func serve(ctx context.Context, args []string, stdin io.Reader, stderr io.Writer) error {
	fs := flag.NewFlagSet("serve", flag.ContinueOnError)
	addr := fs.String("addr", "127.0.0.1:8088", "")
	db := fs.String("db", "", "")
	ready := fs.String("ready-file", "", "")
	withStdin := fs.Bool("with-stdin", false, "")
	rules := rules{CardLimit: 100_000, Stock: 1_000}
	fs.Int64Var(&rules.CardLimit, "card-limit", rules.CardLimit, "")
	fs.Int64Var(&rules.Stock, "stock", rules.Stock, "")
	fs.Func("no-carrier", "", func(country string) error {
		rules.NoCarrier = append(rules.NoCarrier, country)
		return nil
	})
	faults := newFaults()
	fs.Func("fault", "", func(text string) error {
		kind, settings, _ := strings.Cut(text, ":")
		return faults.set(kind, settings)
	})
	if err := parse(fs, args, stderr, "db"); err != nil {
		return err
	}

	st, err := openStore(ctx, *db)
	if err != nil {
		return err
	}
	defer st.Close()
	listener, err := new(net.ListenConfig).Listen(ctx, "tcp", *addr)
	if err != nil {
		return fmt.Errorf("listen: %w", err)
	}
	url := "http://" + listener.Addr().String()
	if *ready != "" {
		if err := writeReady(*ready, url); err != nil {
			return errors.Join(err, listener.Close())
		}
	}
	fmt.Fprintf(stderr, "shop: serving %s\n", url)

	ctx, stop := context.WithCancel(ctx)
	defer stop()
	if *withStdin {
		// This goroutine may run until the process ends, because a read of stdin cannot be
		// interrupted.
		go func() {
			_, _ = io.Copy(io.Discard, stdin)
			stop()
		}()
	}
	server := &http.Server{Handler: newService(st, rules, faults), ReadHeaderTimeout: 10 * time.Second}
	done := make(chan error, 1)
	go func() { done <- server.Serve(listener) }()
	select {
	case err := <-done:
		return fmt.Errorf("serve: %w", err)
	case <-ctx.Done():
	}
	last, cancel := context.WithTimeout(context.WithoutCancel(ctx), 2*time.Second)
	defer cancel()
	if err := server.Shutdown(last); err != nil {
		// Calls in progress get no answer. The callers must handle this.
		_ = server.Close()
	}
	<-done
	return nil
}

// writeReady writes the shop's URL to a file. The file appears with its whole text at once. So a
// process that waits for the file never reads only a part of the URL.
func writeReady(path, url string) error {
	tmp, err := os.CreateTemp(filepath.Dir(path), ".ready-*")
	if err != nil {
		return fmt.Errorf("ready file: %w", err)
	}
	_, err = fmt.Fprintln(tmp, url)
	if err = errors.Join(err, tmp.Close()); err != nil {
		return fmt.Errorf("ready file: %w", err)
	}
	if err := os.Rename(tmp.Name(), path); err != nil {
		return fmt.Errorf("ready file: %w", err)
	}
	return nil
}
