package main

import (
	"bytes"
	"context"
	"crypto/tls"
	"crypto/x509"
	"encoding/json"
	"encoding/pem"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
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
		CompleteBy: time.Now().Add(time.Minute), TraceParent: "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01",
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

func TestRequest(t *testing.T) {
	s, asked := recorder(t, nil)
	for name, tc := range map[string]struct {
		config in
		action string
		input  in
		want   seen
		header map[string]string // "" = absent
	}{
		"get": {in{}, "get", in{"url": s.URL + "/a?x=1", "query": in{"y": "2 3&"}}, seen{Method: "GET", URL: "/a?x=1&y=2+3%26"}, map[string]string{
			"Idempotency-Key": "key-1", "Traceparent": "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01", "User-Agent": "engine-agent-http/" + version, "Content-Type": "", "Accept-Encoding": "",
		}},
		"head":         {in{}, "head", in{"url": s.URL + "/"}, seen{Method: "HEAD", URL: "/"}, nil},
		"delete":       {in{}, "delete", in{"url": s.URL + "/d"}, seen{Method: "DELETE", URL: "/d"}, nil},
		"json":         {in{}, "post", in{"url": s.URL + "/", "json": in{"n": json.Number("12345678901234567890.10"), "h": "<&>"}}, seen{Method: "POST", URL: "/", Body: `{"h":"<&>","n":12345678901234567890.10}`}, map[string]string{"Content-Type": "application/json"}},
		"json scalar":  {in{}, "put", in{"url": s.URL + "/", "json": false}, seen{Method: "PUT", URL: "/", Body: `false`}, nil},
		"form":         {in{}, "patch", in{"url": s.URL + "/", "form": in{"a": "1 2", "b": "ü"}}, seen{Method: "PATCH", URL: "/", Body: `a=1+2&b=%C3%BC`}, map[string]string{"Content-Type": "application/x-www-form-urlencoded"}},
		"text":         {in{}, "post", in{"url": s.URL + "/", "body": "hé"}, seen{Method: "POST", URL: "/", Body: `hé`}, map[string]string{"Content-Type": "text/plain; charset=utf-8"}},
		"content type": {in{}, "post", in{"url": s.URL + "/", "body": "<a/>", "content_type": "application/xml"}, seen{Method: "POST", URL: "/", Body: `<a/>`}, map[string]string{"Content-Type": "application/xml"}},
		"empty post":   {in{}, "post", in{"url": s.URL + "/"}, seen{Method: "POST", URL: "/"}, map[string]string{"Idempotency-Key": "key-1"}},
		"any method":   {in{}, "request", in{"url": s.URL + "/", "method": "PURGE"}, seen{Method: "PURGE", URL: "/"}, nil},
		"headers": {in{"headers": in{"X-A": "agent", "X-B": "agent"}}, "get", in{"url": s.URL + "/", "headers": in{"x-b": "call", "Content-Type": "x/y"}}, seen{Method: "GET", URL: "/"}, map[string]string{
			"X-A": "agent", "X-B": "call", "Content-Type": "x/y",
		}},
		"base_url":          {in{"base_url": s.URL + "/v1/?k=v"}, "get", in{"url": "orders/7?x=1"}, seen{Method: "GET", URL: "/v1/orders/7?k=v&x=1"}, nil},
		"base_url, rooted":  {in{"base_url": s.URL + "/v1"}, "get", in{"url": "/orders"}, seen{Method: "GET", URL: "/v1/orders"}, nil},
		"base_url, escaped": {in{"base_url": s.URL}, "get", in{"url": "/a%2Fb"}, seen{Method: "GET", URL: "/a%2Fb"}, nil},
		"base_url, whole":   {in{"base_url": s.URL}, "get", in{"url": s.URL + "/z"}, seen{Method: "GET", URL: "/z"}, nil},
		"other key header":  {in{"idempotency_header": "X-Request-Id", "forward_key_header": "X-Undoes"}, "post", in{"url": s.URL + "/"}, seen{Method: "POST", URL: "/"}, map[string]string{"X-Request-Id": "key-1", "X-Undoes": "key-0", "Idempotency-Key": ""}},
		"step's key header": {in{"idempotency_header": "X-Request-Id"}, "post", in{"url": s.URL + "/", "idempotency_header": "X-Mine"}, seen{Method: "POST", URL: "/"}, map[string]string{"X-Mine": "key-1", "X-Request-Id": ""}},
		"no key header":     {in{}, "post", in{"url": s.URL + "/", "idempotency_header": ""}, seen{Method: "POST", URL: "/"}, map[string]string{"Idempotency-Key": ""}},
	} {
		t.Run(name, func(t *testing.T) {
			before := len(asked())
			if reply := invoke(t, open(t, tc.config), tc.action, tc.input); reply.Outcome != sdk.OutcomeResult {
				t.Fatalf("reply=%+v", reply)
			}
			all := asked()
			if len(all) != before+1 {
				t.Fatalf("%d requests, want 1", len(all)-before)
			}
			got := all[before]
			for k, want := range tc.header {
				if v := got.Header.Get(k); v != want {
					t.Errorf("%s: %q, want %q", k, v, want)
				}
			}
			got.Header = nil
			if fmt.Sprint(got) != fmt.Sprint(tc.want) {
				t.Errorf("got  %+v\nwant %+v", got, tc.want)
			}
		})
	}
}

// TestNeverSent: what makes no sense is a definite failure, and no server is
// asked.
func TestNeverSent(t *testing.T) {
	s, asked := recorder(t, nil)
	for name, tc := range map[string]struct {
		config in
		action string
		input  in
		want   string
	}{
		"relative":         {in{}, "get", in{"url": "/a"}, "must begin with http"},
		"scheme":           {in{}, "get", in{"url": "file:///etc/passwd"}, "must begin with http"},
		"no host":          {in{}, "get", in{"url": "http:///x"}, "names no host"},
		"nonsense":         {in{}, "get", in{"url": "http://a b/"}, "is not a URL"},
		"other host":       {in{"base_url": "http://api.example.com"}, "get", in{"url": s.URL}, "not below the agent's base_url"},
		"other host, //":   {in{"base_url": "http://api.example.com"}, "get", in{"url": "//" + strings.TrimPrefix(s.URL, "http://") + "/x"}, "not below the agent's base_url"},
		"two bodies":       {in{}, "post", in{"url": s.URL, "json": 1, "body": "x"}, "only one of json, form and body"},
		"method":           {in{}, "request", in{"url": s.URL, "method": "GE T"}, "invalid method"},
		"header name":      {in{}, "get", in{"url": s.URL, "headers": in{"a b": "c"}}, "invalid header"},
		"header value":     {in{}, "get", in{"url": s.URL, "headers": in{"a": "c\nd: e"}}, "invalid header"},
		"expect":           {in{}, "get", in{"url": s.URL, "expect": []string{"7xx"}}, "expect: \"7xx\""},
		"errors":           {in{}, "get", in{"url": s.URL, "errors": in{"4": "x"}}, "errors: \"4\""},
		"error code":       {in{}, "get", in{"url": s.URL, "errors": in{"404": "Not Found"}}, "cannot be an error code"},
		"engine's code":    {in{}, "get", in{"url": s.URL, "errors": in{"500": "timeout"}}, "cannot be an error code"},
		"body of a get":    {in{}, "get", in{"url": s.URL, "json": 1}, "json: is not known"},
		"unknown response": {in{}, "get", in{"url": s.URL, "response": "xml"}, "must be one of"},
	} {
		t.Run(name, func(t *testing.T) {
			reply := invoke(t, open(t, tc.config), tc.action, tc.input)
			if reply.Outcome != sdk.OutcomeFailed || reply.Code != sdk.CodeInvalid || !reply.Permanent || !strings.Contains(reply.Message, tc.want) {
				t.Errorf("reply=%+v, want invalid: %q", reply, tc.want)
			}
		})
	}
	if all := asked(); len(all) > 0 {
		t.Errorf("requests were sent: %+v", all)
	}
}

// TestStatus: the agent knows its remote's ways to fail (S25): which responses
// are results, which say that nothing was done (S31), and which leave it open
// (S77).
func TestStatus(t *testing.T) {
	s, _ := recorder(t, func(w http.ResponseWriter, r *http.Request) {
		var status int
		fmt.Sscan(r.URL.Query().Get("s"), &status) //nolint:errcheck // the test's own
		if after := r.URL.Query().Get("after"); after != "" {
			w.Header().Set("Retry-After", after)
		}
		w.WriteHeader(status)
		fmt.Fprint(w, "because \x1b[31m of\nthis") //nolint:errcheck // not for 204
	})
	a := open(t, in{})
	const result, failed, unknown = sdk.OutcomeResult, sdk.OutcomeFailed, sdk.OutcomeUnknown
	for name, tc := range map[string]struct {
		action string
		status int
		input  in
		want   sdk.Outcome
		code   string
		perm   bool
		after  time.Duration
	}{
		"200":                     {"post", 200, nil, result, "", false, 0},
		"204":                     {"post", 204, nil, result, "", false, 0},
		"400":                     {"post", 400, nil, failed, "invalid", true, 0},
		"401":                     {"post", 401, nil, failed, "denied", true, 0},
		"403":                     {"post", 403, nil, failed, "denied", true, 0},
		"404":                     {"post", 404, nil, failed, "not_found", false, 0},
		"409":                     {"post", 409, nil, failed, "conflict", false, 0},
		"422":                     {"post", 422, nil, failed, "invalid", true, 0},
		"429":                     {"post", 429, in{"after": "7"}, failed, "rate_limited", false, 7 * time.Second},
		"425":                     {"post", 425, nil, failed, "unavailable", false, 0},
		"408":                     {"post", 408, nil, unknown, "unavailable", false, 0},
		"500":                     {"post", 500, nil, unknown, "internal", false, 0},
		"503":                     {"post", 503, in{"after": "7"}, unknown, "unavailable", false, 0},
		"302":                     {"post", 302, nil, unknown, "internal", false, 0},
		"get 503":                 {"get", 503, in{"after": "7"}, failed, "unavailable", false, 7 * time.Second},
		"get 404":                 {"get", 404, nil, failed, "not_found", false, 0},
		"mapped":                  {"post", 402, in{"errors": in{"402": "card_declined"}}, failed, "card_declined", false, 0},
		"mapped 5xx is definite":  {"post", 503, in{"errors": in{"5xx": "down"}, "after": "3"}, failed, "down", false, 3 * time.Second},
		"most exact wins":         {"post", 503, in{"errors": in{"5xx": "down", "50X": "half", "503": "exact"}}, failed, "exact", false, 0},
		"expected":                {"post", 404, in{"expect": []string{"200", "404"}}, result, "", false, 0},
		"expected pattern":        {"post", 302, in{"expect": []string{"3xx"}}, result, "", false, 0},
		"not expected 2xx":        {"post", 202, in{"expect": []string{"200"}}, unknown, "internal", false, 0},
		"expected before pattern": {"post", 404, in{"expect": []string{"404"}, "errors": in{"4xx": "bad"}}, result, "", false, 0},
		"error before pattern":    {"post", 204, in{"errors": in{"204": "nothing"}}, failed, "nothing", false, 0},
	} {
		t.Run(name, func(t *testing.T) {
			input := in{"url": fmt.Sprintf("%s/?s=%d", s.URL, tc.status)}
			for k, v := range tc.input {
				if k == "after" {
					input["url"] = input["url"].(string) + "&after=" + v.(string)
					continue
				}
				input[k] = v
			}
			got := invoke(t, a, tc.action, input)
			if got.Outcome != tc.want || got.Code != tc.code || got.Permanent != tc.perm || got.RetryAfter != tc.after {
				t.Errorf("got  %+v\nwant %+v", got, tc)
			}
			if tc.want != result {
				if !strings.Contains(got.Message, fmt.Sprint(tc.status)) || strings.ContainsAny(got.Message, "\x1b\n?") {
					t.Errorf("message %q, want the status, and neither control characters nor the query", got.Message)
				}
			}
		})
	}
}

func TestRetryAfter(t *testing.T) {
	now := time.Date(2024, 2, 29, 12, 0, 0, 0, time.UTC)
	for text, want := range map[string]time.Duration{
		"":                              0,
		"120":                           2 * time.Minute,
		"-3":                            0,
		"soon":                          0,
		"Thu, 29 Feb 2024 12:00:30 GMT": 30 * time.Second,
		"Thu, 29 Feb 2024 11:00:00 GMT": 0,
		"99999999999999999999999999999": 0,
		"9999999999":                    24 * time.Hour,
		"Fri, 01 Mar 2030 12:00:00 GMT": 24 * time.Hour,
	} {
		if got := retryAfter(text, now); got != want {
			t.Errorf("%q: %s, want %s", text, got, want)
		}
	}
}

func TestResponse(t *testing.T) {
	for name, tc := range map[string]struct {
		contentType, body, how string
		want                   callOut // JSON as text
		code                   string
	}{
		"json":               {"application/json; charset=utf-8", `{"n":12345678901234567890.10}`, "auto", callOut{JSON: `{"n":12345678901234567890.10}`, Body: `{"n":12345678901234567890.10}`}, ""},
		"problem json":       {"application/problem+json", `[1]`, "auto", callOut{JSON: `[1]`, Body: `[1]`}, ""},
		"text":               {"text/plain", `[1]`, "auto", callOut{JSON: `null`, Body: `[1]`}, ""},
		"broken json":        {"application/json", `{`, "auto", callOut{JSON: `null`, Body: `{`}, ""},
		"two documents":      {"application/json", `1 2`, "auto", callOut{JSON: `null`, Body: `1 2`}, ""},
		"empty json":         {"application/json", ``, "auto", callOut{JSON: `null`}, ""},
		"json as json":       {"text/plain", `{"a":1}`, "json", callOut{JSON: `{"a":1}`}, ""},
		"must be json":       {"application/json", `{`, "json", callOut{}, sdk.CodeBadReply},
		"json as text":       {"application/json", `{"a":1}`, "text", callOut{JSON: `null`, Body: `{"a":1}`}, ""},
		"none":               {"application/json", `{"a":1}`, "none", callOut{JSON: `null`}, ""},
		"binary":             {"application/octet-stream", "\xff\x00", "auto", callOut{JSON: `null`, Body: "/wA=", Base64: true}, ""},
		"binary as text":     {"text/plain", "\xff\x00", "text", callOut{}, sdk.CodeBadReply},
		"as large as can be": {"text/plain", strings.Repeat("x", 1000), "auto", callOut{JSON: `null`, Body: strings.Repeat("x", 1000)}, ""},
		"too large":          {"text/plain", strings.Repeat("x", 1001), "auto", callOut{}, sdk.CodeBadReply},
		"too large, unread":  {"text/plain", strings.Repeat("x", 1001), "none", callOut{}, sdk.CodeBadReply},
	} {
		t.Run(name, func(t *testing.T) {
			s, _ := recorder(t, func(w http.ResponseWriter, _ *http.Request) {
				w.Header().Set("Content-Type", tc.contentType)
				w.Header().Add("X-Two", "1")
				w.Header().Add("X-Two", "2")
				io.WriteString(w, tc.body) //nolint:errcheck // the test's own
			})
			reply := invoke(t, open(t, in{"max_response_bytes": 1000}), "post", in{"url": s.URL, "response": tc.how})
			if tc.code != "" {
				if reply.Outcome != sdk.OutcomeUnknown || reply.Code != tc.code {
					t.Errorf("reply=%+v, want unknown %s: something may have been done", reply, tc.code)
				}
				return
			}
			out := output(t, reply)
			if out.Status != 200 || out.Headers["x-two"] != "1, 2" || out.Headers["content-type"] != tc.contentType {
				t.Errorf("status %d headers %v", out.Status, out.Headers)
			}
			out.Status, out.Headers = 0, nil
			if fmt.Sprint(out) != fmt.Sprint(tc.want) {
				t.Errorf("got  %+v\nwant %+v", out, tc.want)
			}
		})
	}
}

// TestLostConnection: before a connection nothing can have been done; once there
// is one, only a read is sure of that (S5).
func TestLostConnection(t *testing.T) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close() //nolint:errcheck // the test's own
	var conns atomic.Int32
	go func() {
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			conns.Add(1)
			buf := make([]byte, 4096)
			c.Read(buf) //nolint:errcheck // whatever it was
			c.Close()   //nolint:errcheck // that is the point
		}
	}()
	gone, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	nobody := "http://" + gone.Addr().String() + "/?secret=canary"
	if err := gone.Close(); err != nil {
		t.Fatal(err)
	}
	broken := "http://" + l.Addr().String() + "/?secret=canary"
	for name, tc := range map[string]struct {
		action, url string
		want        sdk.Outcome
	}{
		"post, nobody there": {"post", nobody, sdk.OutcomeFailed},
		"get, nobody there":  {"get", nobody, sdk.OutcomeFailed},
		"no such host":       {"post", "http://no-such-host.invalid/?secret=canary", sdk.OutcomeFailed},
		"no TLS there":       {"post", strings.Replace(broken, "http:", "https:", 1), sdk.OutcomeFailed},
		"post, broken":       {"post", broken, sdk.OutcomeUnknown},
		"put, broken":        {"put", broken, sdk.OutcomeUnknown},
		"delete, broken":     {"delete", broken, sdk.OutcomeUnknown},
		"get, broken":        {"get", broken, sdk.OutcomeFailed},
	} {
		t.Run(name, func(t *testing.T) {
			before := conns.Load()
			reply := invoke(t, open(t, in{}), tc.action, in{"url": tc.url})
			if reply.Outcome != tc.want || reply.Code != sdk.CodeUnavailable || strings.Contains(reply.Message, "canary") {
				t.Errorf("reply=%+v, want outcome %d, unavailable, no query", reply, tc.want)
			}
			if n := conns.Load() - before; n > 1 {
				t.Errorf("%d connections: the agent repeated by itself", n)
			}
		})
	}
}

// TestNoSilentRepetition: net/http repeats a request on a kept connection that
// breaks if it carries an idempotency key; every call has to be the engine's.
func TestNoSilentRepetition(t *testing.T) {
	var calls atomic.Int32
	s, asked := recorder(t, func(w http.ResponseWriter, _ *http.Request) {
		if calls.Add(1) == 1 {
			return
		}
		panic(http.ErrAbortHandler) // cuts the connection after the request was read
	})
	a := open(t, in{})
	if reply := invoke(t, a, "post", in{"url": s.URL}); reply.Outcome != sdk.OutcomeResult {
		t.Fatalf("reply=%+v", reply)
	}
	if reply := invoke(t, a, "post", in{"url": s.URL, "headers": in{"X-Idempotency-Key": "x"}}); reply.Outcome != sdk.OutcomeUnknown {
		t.Errorf("reply=%+v, want unknown", reply)
	}
	if n := len(asked()); n != 2 {
		t.Errorf("%d requests, want 2", n)
	}
}

func TestRedirects(t *testing.T) {
	var other *httptest.Server
	s, asked := recorder(t, func(w http.ResponseWriter, r *http.Request) {
		switch r.URL.Path {
		case "/here":
			http.Redirect(w, r, "/there?x=1", http.StatusFound)
		case "/away":
			http.Redirect(w, r, other.URL, http.StatusFound)
		case "/loop":
			http.Redirect(w, r, "/loop", http.StatusFound)
		}
	})
	other, askedOther := recorder(t, nil)
	a := open(t, in{"headers": in{"X-Api-Key": "secret"}})
	if out := output(t, invoke(t, a, "get", in{"url": s.URL + "/here"})); out.Status != 200 {
		t.Errorf("status=%d, want the redirect followed", out.Status)
	}
	if out := output(t, invoke(t, a, "get", in{"url": s.URL + "/here", "follow_redirects": false, "expect": []string{"302"}})); out.Headers["location"] != "/there?x=1" {
		t.Errorf("headers=%v, want the redirect itself", out.Headers)
	}
	if reply := invoke(t, a, "get", in{"url": s.URL + "/away"}); reply.Outcome == sdk.OutcomeResult {
		t.Errorf("reply=%+v", reply)
	}
	if n := len(askedOther()); n != 0 {
		t.Error("the agent's headers went to another host")
	}
	before := len(asked())
	invoke(t, a, "get", in{"url": s.URL + "/loop"})
	if n := len(asked()) - before; n != maxRedirects+1 {
		t.Errorf("%d requests in a loop, want %d", n, maxRedirects+1)
	}
	before = len(asked())
	if reply := invoke(t, a, "post", in{"url": s.URL + "/here"}); reply.Outcome != sdk.OutcomeUnknown || len(asked()) != before+1 {
		t.Errorf("post: %+v, want unknown: a redirect is no answer to it", reply)
	}
}

// TestS28Deadline: all work is bounded by complete-by (S25), past which the agent
// says nothing; told to stop, it
// says that it does not know; its own timeout is a failure of the service.
func TestS28Deadline(t *testing.T) {
	release := make(chan struct{})
	s, _ := recorder(t, func(_ http.ResponseWriter, r *http.Request) {
		select {
		case <-release:
		case <-r.Context().Done():
		}
	})
	defer close(release)
	req := request(t, "post", in{"url": s.URL})
	req.CompleteBy = time.Now().Add(200 * time.Millisecond)
	if reply, ok := open(t, in{}).Invoke(t.Context(), req, sdk.InvokeOptions{}); ok {
		t.Errorf("reply=%+v after complete-by", reply)
	}
	ctx, cancel := context.WithCancel(t.Context())
	time.AfterFunc(100*time.Millisecond, cancel)
	reply, ok := open(t, in{}).Invoke(ctx, request(t, "post", in{"url": s.URL}), sdk.InvokeOptions{})
	if !ok || reply.Outcome != sdk.OutcomeUnknown || reply.Code != sdk.CodeAborted {
		t.Errorf("stopped: %+v %v, want unknown aborted", reply, ok)
	}
	reply = invoke(t, open(t, in{"timeout": "100ms"}), "post", in{"url": s.URL})
	if reply.Outcome != sdk.OutcomeUnknown || reply.Code != sdk.CodeUnavailable || !strings.Contains(reply.Message, "timeout") {
		t.Errorf("timeout: %+v, want unknown unavailable", reply)
	}
}

func TestTLS(t *testing.T) {
	s := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		fmt.Fprint(w, len(r.TLS.PeerCertificates)) //nolint:errcheck // the test's own
	}))
	s.TLS = &tls.Config{ClientAuth: tls.RequestClientCert}
	s.Config.ErrorLog = nil
	s.StartTLS()
	defer s.Close()
	old := httptest.NewUnstartedServer(http.NotFoundHandler())
	old.TLS = &tls.Config{MaxVersion: tls.VersionTLS11, MinVersion: tls.VersionTLS10}
	old.StartTLS()
	defer old.Close()
	dir := t.TempDir()
	write := func(name, kind string, der []byte) string {
		path := filepath.Join(dir, name)
		if err := os.WriteFile(path, pem.EncodeToMemory(&pem.Block{Type: kind, Bytes: der}), 0o600); err != nil {
			t.Fatal(err)
		}
		return path
	}
	ca := write("ca.pem", "CERTIFICATE", s.Certificate().Raw)
	key, err := x509.MarshalPKCS8PrivateKey(s.TLS.Certificates[0].PrivateKey)
	if err != nil {
		t.Fatal(err)
	}
	keyFile := write("key.pem", "PRIVATE KEY", key)
	for name, tc := range map[string]struct {
		config in
		url    string
		want   string // body; "" = refused
	}{
		"unknown authority": {in{}, s.URL, ""},
		"own authority":     {in{"ca_file": ca}, s.URL, "0"},
		"client":            {in{"ca_file": ca, "cert_file": ca, "key_file": keyFile}, s.URL, "1"},
		"other name":        {in{"ca_file": ca, "server_name": "other.example.org"}, s.URL, ""},
		"expected name":     {in{"ca_file": ca, "server_name": "example.com"}, s.URL, "0"},
		"not verified":      {in{"insecure_skip_verify": true}, s.URL, "0"},
		"TLS 1.1":           {in{"insecure_skip_verify": true}, old.URL, ""},
	} {
		t.Run(name, func(t *testing.T) {
			reply := invoke(t, open(t, tc.config), "post", in{"url": tc.url})
			if tc.want == "" {
				if reply.Outcome != sdk.OutcomeFailed || reply.Code != sdk.CodeUnavailable {
					t.Errorf("reply=%+v, want the definite failure unavailable: nothing was sent", reply)
				}
				return
			}
			if out := output(t, reply); out.Body != tc.want {
				t.Errorf("body=%s, want %s client certificates", out.Body, tc.want)
			}
		})
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
		described, err := plugin.Describe(t.Context(), path)
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
