package main

import (
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/saga-engine/engine/sdk"
)

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
		"503":                     {"post", 503, nil, unknown, "unavailable", false, 0},
		"503 with a wish":         {"post", 503, in{"after": "7"}, unknown, "unavailable", false, 7 * time.Second},
		"408 with a wish":         {"post", 408, in{"after": "9"}, unknown, "unavailable", false, 9 * time.Second},
		"get 500 with a wish":     {"get", 500, in{"after": "9"}, unknown, "internal", false, 9 * time.Second},
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
				if !strings.Contains(got.Message, fmt.Sprint(tc.status)) || strings.Contains(got.Message, "?") {
					t.Errorf("message %q, want the status, and not the query", got.Message)
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
