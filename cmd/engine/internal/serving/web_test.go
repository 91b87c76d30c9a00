package serving

import (
	"errors"
	"io"
	"log/slog"
	"net/http"
	"strings"
	"testing"
)

// --http answers machines: what it knows, whether the process lives, and
// whether it is ready for work; nothing else.
func TestWeb(t *testing.T) {
	var why error
	metrics := http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { _, _ = io.WriteString(w, "engine_x 1\n") })
	web, err := listenWeb("127.0.0.1:0", metrics, func() error { return why })
	if err != nil {
		t.Fatal(err)
	}
	done := make(chan struct{})
	go func() { web.run(slog.New(slog.DiscardHandler)); close(done) }()
	defer func() {
		web.close(t.Context())
		<-done
	}()
	ask := func(method, path string) (int, string) {
		t.Helper()
		req, err := http.NewRequestWithContext(t.Context(), method, "http://"+web.address()+path, nil)
		if err != nil {
			t.Fatal(err)
		}
		res, err := http.DefaultClient.Do(req)
		if err != nil {
			t.Fatal(err)
		}
		defer res.Body.Close()
		body, err := io.ReadAll(res.Body)
		if err != nil {
			t.Fatal(err)
		}
		return res.StatusCode, string(body)
	}
	for _, c := range []struct {
		name, method, path string
		why                error
		status             int
		body               string
	}{
		{"metrics", "GET", "/metrics", nil, 200, "engine_x 1"},
		{"lives", "GET", "/healthz", errors.New("no lease"), 200, "ok"},
		{"ready", "GET", "/readyz", nil, 200, "ok"},
		{"not ready", "GET", "/readyz", errors.New("no lease"), 503, "no lease"},
		{"no orders", "POST", "/metrics", nil, 405, ""},
		{"nothing else", "GET", "/runs", nil, 404, ""},
	} {
		t.Run(c.name, func(t *testing.T) {
			why = c.why
			status, body := ask(c.method, c.path)
			if status != c.status || !strings.Contains(body, c.body) {
				t.Errorf("%d %q, want %d and %q", status, body, c.status, c.body)
			}
		})
	}
	if _, err := listenWeb(web.address(), metrics, nil); err == nil || !strings.Contains(err.Error(), "Cannot listen") {
		t.Errorf("a second one on the same address: %v, want that it cannot listen", err)
	}
}
