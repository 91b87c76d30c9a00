package main

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/saga-engine/engine/sdk"
	"github.com/saga-engine/engine/sdk/plugin"
	"github.com/saga-engine/engine/sdk/sdktest"
)

type in = map[string]any

func open(t *testing.T, config in) *sdk.Agent {
	t.Helper()
	a := newAgent()
	raw, err := json.Marshal(config)
	if err != nil {
		t.Fatal(err)
	}
	if err := a.Configure(t.Context(), raw); err != nil {
		t.Fatal(err)
	}
	return a
}

func request(t *testing.T, action string, input in) sdk.Request {
	t.Helper()
	raw, err := json.Marshal(input)
	if err != nil {
		t.Fatal(err)
	}
	return sdk.Request{
		Action: action, Purpose: sdk.PurposeDo, Input: raw, IdempotencyKey: "key-1", ForwardKey: "key-0",
		CompleteBy: time.Now().Add(time.Minute),
	}
}

func invoke(t *testing.T, a *sdk.Agent, action string, input in) sdk.Reply {
	t.Helper()
	reply, ok := a.Invoke(t.Context(), request(t, action, input), sdk.InvokeOptions{})
	if !ok {
		t.Fatalf("%s: no reply in time", action)
	}
	return reply
}

func output(t *testing.T, reply sdk.Reply) callOut {
	t.Helper()
	if reply.Outcome != sdk.OutcomeResult {
		t.Fatalf("reply=%+v, want a result", reply)
	}
	var raw map[string]json.RawMessage
	if err := json.Unmarshal(reply.Output, &raw); err != nil {
		t.Fatal(err)
	}
	var out callOut
	for name, target := range map[string]any{"status": &out.Status, "headers": &out.Headers, "body": &out.Body, "base64": &out.Base64} {
		if err := json.Unmarshal(raw[name], target); err != nil {
			t.Fatal(err)
		}
	}
	out.JSON = string(raw["json"])
	return out
}

// seen is what a server was asked.
type seen struct {
	Method, URL, Body string
	Header            http.Header
}

// recorder is a server that remembers its requests.
func recorder(t *testing.T, answer http.HandlerFunc) (*httptest.Server, func() []seen) {
	t.Helper()
	var mu sync.Mutex
	var all []seen
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, err := io.ReadAll(r.Body)
		if err != nil {
			t.Errorf("read: %v", err)
		}
		mu.Lock()
		all = append(all, seen{r.Method, r.URL.String(), string(body), r.Header.Clone()})
		mu.Unlock()
		if answer != nil {
			answer(w, r)
		}
	}))
	t.Cleanup(s.Close)
	return s, func() []seen {
		mu.Lock()
		defer mu.Unlock()
		return append([]seen(nil), all...)
	}
}

func TestConfigure(t *testing.T) {
	empty := filepath.Join(t.TempDir(), "empty.pem")
	if err := os.WriteFile(empty, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	for name, tc := range map[string]struct {
		config in
		want   string
	}{
		"base_url":   {in{"base_url": "api.example.com"}, "base_url: must begin with http"},
		"timeout":    {in{"timeout": "-1s"}, "timeout: "},
		"too much":   {in{"max_response_bytes": 1<<20 + 1}, "max_response_bytes: "},
		"no ca":      {in{"ca_file": "/does/not/exist"}, "ca_file: "},
		"empty ca":   {in{"ca_file": empty}, "no certificate"},
		"key only":   {in{"key_file": empty}, "one needs the other"},
		"empty cert": {in{"cert_file": empty, "key_file": empty}, "cert_file and key_file: "},
		"unknown":    {in{"proxy": "x"}, "proxy: is not known"},
	} {
		t.Run(name, func(t *testing.T) {
			raw, err := json.Marshal(tc.config)
			if err != nil {
				t.Fatal(err)
			}
			if err := newAgent().Configure(t.Context(), raw); err == nil || !strings.Contains(err.Error(), tc.want) {
				t.Errorf("error=%v, want %q", err, tc.want)
			}
		})
	}
}

// shop is a service that honours idempotency keys.
type shop struct {
	mu   sync.Mutex
	done map[string]bool
}

func (s *shop) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if r.URL.Path == "/slow" {
		<-r.Context().Done()
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if r.Method != http.MethodGet {
		s.done[r.Header.Get("Idempotency-Key")] = true
	}
	w.Header().Set("Content-Type", "application/json")
	w.Header()["Date"] = nil
	fmt.Fprint(w, `{"ok":true}`) //nolint:errcheck // the test's own
}

func (s *shop) effects() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return len(s.done)
}

// TestRules checks the promises of the agent in this process and through a real
// one.
func TestRules(t *testing.T) {
	remote := &shop{done: map[string]bool{}}
	s := httptest.NewServer(remote)
	defer s.Close()
	url := func(path string) string { return fmt.Sprintf(`{"url":%q}`, s.URL+path) }
	cases := []sdktest.Case{
		{Name: "get", Action: "get", Input: url("/")},
		{Name: "put", Action: "put", Input: url("/"), Effects: remote.effects},
		{Name: "delete", Action: "delete", Input: url("/"), Effects: remote.effects},
		{Name: "slow get", Action: "get", Input: url("/slow"), Slow: true},
		{Name: "no server", Action: "get", Input: `{"url":"ftp://x/"}`, Code: sdk.CodeInvalid},
	}
	t.Run("in process", func(t *testing.T) { sdktest.Run(t, open(t, in{}), cases...) })
	t.Run("real process", func(t *testing.T) {
		path := filepath.Join(t.TempDir(), "engine-agent-http")
		if out, err := exec.Command("go", "build", "-o", path, ".").CombinedOutput(); err != nil {
			t.Fatalf("build: %v\n%s", err, out)
		}
		p, err := plugin.Open(t.Context(), plugin.OpenOptions{Path: path})
		if err != nil {
			t.Fatal(err)
		}
		defer func() {
			if err := p.Close(); err != nil {
				t.Error(err)
			}
		}()
		if err := p.Configure(t.Context(), nil); err != nil {
			t.Fatal(err)
		}
		sdktest.RunTarget(t, p, cases...)
		described, err := plugin.Describe(t.Context(), plugin.DescribeOptions{Path: path})
		if err != nil {
			t.Fatal(err)
		}
		want, err := json.Marshal(p.Schema())
		if err != nil {
			t.Fatal(err)
		}
		if got, err := json.Marshal(described.Schema); err != nil || !bytes.Equal(got, want) {
			t.Errorf("described as %s, runs as %s, %v", got, want, err)
		}
	})
}

// Only requests that change nothing may be interrupted when a run turns back: an
// interrupted POST has an unknown outcome.
func TestOnlyReadsMayBeInterrupted(t *testing.T) {
	schema, err := newAgent().Schema()
	if err != nil {
		t.Fatal(err)
	}
	for name, a := range schema.Actions {
		if a.Cancellable != a.ReadOnly {
			t.Errorf("%s: read_only is %t and cancellable is %t, want the same", name, a.ReadOnly, a.Cancellable)
		}
	}
}
