package ledger

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
)

// Handler returns an HTTP handler through which clients call the ledger.
func Handler(l *Ledger) http.Handler {
	mux := http.NewServeMux()
	handle(mux, "/arrive", func(c Call) (int, error) { return l.Arrive(c) })
	handle(mux, "/apply", func(r applyRequest) (bool, error) { return l.Apply(r.Key, r.Run, r.Step, r.Honours) })
	handle(mux, "/reverse", func(r applyRequest) (bool, error) { return true, l.Reverse(r.Key, r.Run, r.Step) })
	handle(mux, "/standing", func(r applyRequest) (bool, error) { return l.Standing(r.Key), nil })
	handle(mux, "/count", func(struct{}) (int, error) { return l.Count(), nil })
	handle(mux, "/snapshot", func(struct{}) (Snapshot, error) { return l.Snapshot(), nil })
	return mux
}

type applyRequest struct {
	Key, Run, Step string
	Honours        bool
}

func handle[In, Out any](mux *http.ServeMux, path string, fn func(In) (Out, error)) {
	mux.HandleFunc("POST "+path, func(w http.ResponseWriter, r *http.Request) {
		var in In
		if err := json.NewDecoder(r.Body).Decode(&in); err != nil {
			http.Error(w, err.Error(), http.StatusBadRequest)
			return
		}
		out, err := fn(in)
		if err != nil {
			http.Error(w, err.Error(), http.StatusInternalServerError)
			return
		}
		w.Header().Set("Content-Type", "application/json")
		_ = json.NewEncoder(w).Encode(out) // an error does not matter: the client gets an error, too
	})
}

// A Client calls a ledger over HTTP. URL is the address of the ledger, such as
// http://127.0.0.1:4711.
type Client struct{ URL string }

// Arrive calls Ledger.Arrive of the remote ledger.
func (c Client) Arrive(ctx context.Context, call Call) (n int, err error) {
	err = c.post(ctx, "/arrive", call, &n)
	return n, err
}

// Apply calls Ledger.Apply of the remote ledger.
func (c Client) Apply(ctx context.Context, key, run, step string, honours bool) (ok bool, err error) {
	err = c.post(ctx, "/apply", applyRequest{key, run, step, honours}, &ok)
	return ok, err
}

// Reverse calls Ledger.Reverse of the remote ledger.
func (c Client) Reverse(ctx context.Context, key, run, step string) error {
	var ok bool
	return c.post(ctx, "/reverse", applyRequest{Key: key, Run: run, Step: step}, &ok)
}

// Standing calls Ledger.Standing of the remote ledger.
func (c Client) Standing(ctx context.Context, key string) (ok bool, err error) {
	err = c.post(ctx, "/standing", applyRequest{Key: key}, &ok)
	return ok, err
}

// Count calls Ledger.Count of the remote ledger.
func (c Client) Count(ctx context.Context) (n int, err error) {
	err = c.post(ctx, "/count", struct{}{}, &n)
	return n, err
}

// Snapshot calls Ledger.Snapshot of the remote ledger.
func (c Client) Snapshot(ctx context.Context) (s Snapshot, err error) {
	err = c.post(ctx, "/snapshot", struct{}{}, &s)
	return s, err
}

func (c Client) post(ctx context.Context, path string, in, out any) error {
	body, err := json.Marshal(in)
	if err != nil {
		return fmt.Errorf("ledger: %w", err)
	}
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, c.URL+path, bytes.NewReader(body))
	if err != nil {
		return fmt.Errorf("ledger: %w", err)
	}
	res, err := http.DefaultClient.Do(req)
	if err != nil {
		return fmt.Errorf("ledger: %w", err)
	}
	defer res.Body.Close()
	if res.StatusCode != http.StatusOK {
		text, _ := io.ReadAll(io.LimitReader(res.Body, 1000))
		return fmt.Errorf("ledger: %s: %s", res.Status, text)
	}
	if err := json.NewDecoder(res.Body).Decode(out); err != nil {
		return fmt.Errorf("ledger: %w", err)
	}
	return nil
}
