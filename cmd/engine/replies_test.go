package main

import (
	"context"
	"database/sql"
	"encoding/json"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"strings"
	"sync"

	"github.com/rogpeppe/go-internal/testscript"

	"github.com/saga-engine/engine/sdk/client"
)

// sink BODIES CONFIG starts a webhook on loopback. It writes the body of each request to the file
// BODIES, as a line. While a file down exists, it answers 503. It writes the file CONFIG for
// --reply-sinks, with the sink orders, whose secret is in the file hook.secret.
func sink(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) != 2 {
		ts.Fatalf("usage: sink BODIES CONFIG")
	}
	var mu sync.Mutex
	file, down := ts.MkAbs(args[0]), ts.MkAbs("down")
	ts.Check(os.WriteFile(file, nil, 0o600))
	ts.Check(os.WriteFile(ts.MkAbs("hook.secret"), []byte("0123456789abcdef0123456789abcdef\n"), 0o600))
	srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		mu.Lock()
		defer mu.Unlock()
		body, err := io.ReadAll(r.Body)
		if err != nil {
			w.WriteHeader(http.StatusBadRequest)
			return
		}
		if _, err := os.Stat(down); err == nil {
			w.WriteHeader(http.StatusServiceUnavailable)
			return
		}
		f, err := os.OpenFile(file, os.O_APPEND|os.O_WRONLY, 0o600)
		if err == nil {
			_, err = f.Write(append(body, '\n'))
		}
		if err != nil || !strings.HasPrefix(r.Header.Get("webhook-signature"), "v1,") {
			w.WriteHeader(http.StatusInternalServerError)
		}
		if f != nil {
			_ = f.Close() // what was written is checked by the script
		}
	}))
	ts.Defer(srv.Close)
	config, err := json.Marshal(map[string]any{"sinks": map[string]any{"orders": map[string]string{"url": srv.URL + "/in", "secret": "file:hook.secret"}}, "private": true})
	ts.Check(err)
	ts.Check(os.WriteFile(ts.MkAbs(args[1]), config, 0o600))
}

// replies QUEUE WANT takes the replies in a queue as a Go program does, and checks them: RUN:SEQ:STATUS.
// It does it first in a transaction that is rolled back.
func takeReplies(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) != 2 {
		ts.Fatalf("usage: replies QUEUE WANT")
	}
	db, err := sql.Open("postgres", ts.Getenv("ENGINE_DSN"))
	ts.Check(err)
	defer db.Close()
	ctx := context.Background()
	for _, end := range []func(*sql.Tx) error{(*sql.Tx).Rollback, (*sql.Tx).Commit} {
		tx, err := db.BeginTx(ctx, nil)
		ts.Check(err)
		var got []string
		for {
			list, err := client.Replies(ctx, tx, args[0], 10)
			ts.Check(err)
			if len(list) == 0 {
				break
			}
			for _, r := range list {
				got = append(got, r.Run+":"+r.Correlation+":"+string(rune('0'+r.Seq))+":"+r.Status)
			}
		}
		ts.Check(end(tx))
		if text := strings.Join(got, " "); text != args[1] {
			ts.Fatalf("replies %q, want %q", text, args[1])
		}
	}
}
