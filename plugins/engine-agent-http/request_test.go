package main

import (
	"crypto/tls"
	"crypto/x509"
	"encoding/json"
	"encoding/pem"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/saga-engine/engine/sdk"
)

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
			"Idempotency-Key": "key-1", "User-Agent": "engine-agent-http/" + version, "Content-Type": "", "Accept-Encoding": "",
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
		"header name":      {in{}, "get", in{"url": s.URL, "headers": in{"Authorization: hunter2": "c"}}, "invalid header field name (not shown: headers is sensitive)"},
		"header value":     {in{}, "get", in{"url": s.URL, "headers": in{"a": "hunter2\nd: e"}}, `invalid header field value for "A"`},
		"expect":           {in{}, "get", in{"url": s.URL, "expect": []string{"7xx"}}, "expect: \"7xx\""},
		"errors":           {in{}, "get", in{"url": s.URL, "errors": in{"4": "x"}}, "errors: \"4\""},
		"error code":       {in{}, "get", in{"url": s.URL, "errors": in{"404": "Not Found"}}, "cannot be an error code"},
		"engine's code":    {in{}, "get", in{"url": s.URL, "errors": in{"500": "timeout"}}, "cannot be an error code"},
		"body of a get":    {in{}, "get", in{"url": s.URL, "json": 1}, "json: is not known"},
		"unknown response": {in{}, "get", in{"url": s.URL, "response": "xml"}, "must be one of"},
	} {
		t.Run(name, func(t *testing.T) {
			reply := invoke(t, open(t, tc.config), tc.action, tc.input)
			if reply.Outcome != sdk.OutcomeFailed || reply.Code != sdk.CodeInvalid || !reply.Permanent || !strings.Contains(reply.Message, tc.want) || strings.Contains(reply.Message, "hunter2") {
				t.Errorf("reply=%+v, want invalid: %q", reply, tc.want)
			}
		})
	}
	if all := asked(); len(all) > 0 {
		t.Errorf("requests were sent: %+v", all)
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
