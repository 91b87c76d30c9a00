package main

import (
	"encoding/json"
	"io"
	"net/http"
	"strings"
	"testing"

	"github.com/saga-engine/engine/sdk"
)

// refuses starts a server that refuses each request with this status, content type and body.
func refuses(t *testing.T, status int, contentType, body string) string {
	t.Helper()
	s, _ := recorder(t, func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", contentType)
		w.WriteHeader(status)
		io.WriteString(w, body) //nolint:errcheck // the test's own
	})
	return s.URL
}

// A refusal carries the body of the response, which the workflow reads as error.data.
func TestFailureData(t *testing.T) {
	const jsonType = "application/json"
	for name, tc := range map[string]struct {
		contentType, body, how string
		want                   string // JSON; "" = no data
	}{
		"json":               {jsonType, `{"reason":"empty", "n":12345678901234567890.10}`, "auto", `{"n":12345678901234567890.10,"reason":"empty"}`},
		"problem json":       {"application/problem+json; charset=utf-8", `[1]`, "auto", `[1]`},
		"text":               {"text/plain", " no\n", "auto", `"no"`},
		"json in text":       {"text/plain", `{"a":1}`, "auto", `"{\"a\":1}"`},
		"asked for json":     {"text/plain", `{"a":1}`, "json", `{"a":1}`},
		"asked for text":     {jsonType, `{"a":1}`, "text", `"{\"a\":1}"`},
		"broken json":        {jsonType, `{"a":`, "auto", `"{\"a\":"`},
		"not json":           {jsonType, `no`, "json", `"no"`},
		"empty":              {jsonType, " \n", "auto", ``},
		"not wanted":         {jsonType, `{"a":1}`, "none", ``},
		"binary":             {"application/octet-stream", "\xff\xfe", "auto", ``},
		"zero bytes":         {"text/plain", "a\x00b", "auto", ``},
		"no secret is there": {"text/plain", "null", "auto", `"null"`},
	} {
		t.Run(name, func(t *testing.T) {
			reply := invoke(t, open(t, in{}), "post", in{"url": refuses(t, 422, tc.contentType, tc.body), "response": tc.how})
			if reply.Outcome != sdk.OutcomeFailed || string(reply.Output) != tc.want {
				t.Errorf("outcome %d, data %s, want a failure with %s", reply.Outcome, reply.Output, tc.want)
			}
		})
	}
}

// Every definite failure that comes from a response has the body, and so does a failure of a
// read-only action. An unknown outcome has no data.
func TestWhichFailuresHaveData(t *testing.T) {
	for name, tc := range map[string]struct {
		action string
		status int
		errors in
		data   bool
	}{
		"mapped":       {"post", 503, in{"5xx": "down"}, true},
		"not found":    {"post", 404, nil, true},
		"conflict":     {"delete", 409, nil, true},
		"denied":       {"post", 403, nil, true},
		"rate limited": {"post", 429, nil, true},
		"too early":    {"post", 425, nil, true},
		"read, 503":    {"get", 503, nil, true},
		"write, 503":   {"post", 503, nil, false},
		"read, 500":    {"get", 500, nil, false},
	} {
		t.Run(name, func(t *testing.T) {
			input := in{"url": refuses(t, tc.status, "text/plain", "because")}
			if tc.errors != nil {
				input["errors"] = tc.errors
			}
			reply := invoke(t, open(t, in{}), tc.action, input)
			if got := string(reply.Output) == `"because"`; got != tc.data {
				t.Errorf("outcome %d with data %q, want data: %v", reply.Outcome, reply.Output, tc.data)
			}
		})
	}
}

// A body that is too large is cut, and its text says so. Its JSON is never larger than the engine
// accepts, even if each character is escaped.
func TestLargeFailureDataIsCut(t *testing.T) {
	for name, tc := range map[string]struct {
		body string
		most int // max_response_bytes
		want string
	}{
		"text":        {strings.Repeat("x", 100_000), 200_000, " of 100000 bytes)"},
		"json":        {`["` + strings.Repeat("x", 100_000) + `"]`, 200_000, " of 100004 bytes)"},
		"escapes":     {strings.Repeat("<", 60_000), 200_000, " of 60000 bytes)"},
		"not read":    {strings.Repeat("x", 2000), 1000, "… (cut after 1000 of at least 1001 bytes)"},
		"half a rune": {strings.Repeat("é", 1000), 1000, "… (cut after 998 of at least 1000 bytes)"},
	} {
		t.Run(name, func(t *testing.T) {
			url := refuses(t, 400, "application/json", tc.body)
			reply := invoke(t, open(t, in{"max_response_bytes": tc.most}), "post", in{"url": url})
			var text string
			if err := json.Unmarshal(reply.Output, &text); err != nil {
				t.Fatalf("data %.60q is no text: %v", reply.Output, err)
			}
			if !strings.HasSuffix(text, tc.want) || len(reply.Output) > sdk.MaxData {
				t.Errorf("%d bytes that end with %q, want %q", len(reply.Output), text[max(0, len(text)-60):], tc.want)
			}
			if kept, _, _ := strings.Cut(text, "…"); !strings.HasPrefix(tc.body, kept) || len(kept) < min(900, len(tc.body)) {
				t.Errorf("%d bytes are kept, or they are not the beginning of the body", len(kept))
			}
		})
	}
}

// A secret of the request that the service repeats is in the data whole or not at all. So the
// engine recognises it.
func TestFailureDataKeepsSecretsWhole(t *testing.T) {
	const secret = "sw0rd-fish second line"
	for _, before := range []int{980, 985, 990, 995} {
		url := refuses(t, 400, "text/plain", strings.Repeat("x", before)+secret+strings.Repeat("y", 100))
		reply := invoke(t, open(t, in{"max_response_bytes": 1000}), "post", in{"url": url, "form": in{"token": secret}})
		if data := string(reply.Output); strings.Contains(data, "xsw0r") || !strings.Contains(data, "xxx…") {
			t.Errorf("after %d bytes a part of the secret is left: %q", before, data[max(0, len(data)-80):])
		}
	}
	url := refuses(t, 400, "application/json", `{"wrong":"`+secret+`"}`)
	if reply := invoke(t, open(t, in{}), "post", in{"url": url, "form": in{"token": secret}}); string(reply.Output) != `{"wrong":"`+secret+`"}` {
		t.Errorf("the engine cannot recognise the secret in %s", reply.Output)
	}
}
