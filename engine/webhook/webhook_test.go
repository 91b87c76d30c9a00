package webhook

import (
	"encoding/base64"
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"strings"
	"testing"
	"time"

	"github.com/saga-engine/engine/engine/store/replies"
)

const key = "0123456789abcdef0123456789abcdef"

// reply returns a reply for a sink.
func reply(sink string) replies.Reply {
	return replies.Reply{ID: replies.ID{Run: 7, N: 2}, Sink: sink, Correlation: "c-1", State: "started", At: time.Date(2026, 11, 25, 0, 0, 0, 0, time.UTC), Name: "order-7", Workflow: "order", Key: "k-7"}
}

// sender returns a sender with one named sink.
func sender(t *testing.T, url string, private bool) *Sender {
	t.Helper()
	x, err := New(Config{Sinks: map[string]Sink{"orders": {URL: url, Secret: []byte(key)}}, Private: private})
	if err != nil {
		t.Fatal(err)
	}
	return x
}

// A request is a CloudEvents event that is signed as Standard Webhooks says, with the same id in each
// try.
func TestSend(t *testing.T) {
	var body []byte
	var head http.Header
	srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, _ = io.ReadAll(r.Body)
		head = r.Header
		w.WriteHeader(http.StatusNoContent)
	}))
	defer srv.Close()
	x := sender(t, srv.URL, true)
	if err := x.Send(t.Context(), reply("webhook:orders")); err != nil {
		t.Fatal(err)
	}
	if got, want := head.Get("webhook-signature"), Signature([]byte(key), head.Get("webhook-id"), head.Get("webhook-timestamp"), body); got != want || head.Get("webhook-id") != "order-7.2" {
		t.Errorf("signature %q of %q, want %q", got, head.Get("webhook-id"), want)
	}
	var e event
	if err := json.Unmarshal(body, &e); err != nil {
		t.Fatal(err)
	}
	if e.SpecVersion != "1.0" || e.Type != "engine.run.started" || e.Subject != "order-7" || e.ID != "order-7.2" || e.Source != "/engine/workflows/order" ||
		e.Data.Key != "k-7" || e.Data.Correlation != "c-1" || e.Data.Seq != 2 || e.Data.Status != "started" || head.Get("Content-Type") != "application/cloudevents+json" {
		t.Errorf("the event is %s", body)
	}
	if strings.Contains(string(body)+head.Get("webhook-signature"), key) {
		t.Error("the request holds the secret")
	}
}

// The signature is that of the test vector that the libraries of Standard Webhooks share.
func TestSignature(t *testing.T) {
	secret, err := base64.StdEncoding.DecodeString("MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw")
	if err != nil {
		t.Fatal(err)
	}
	got := Signature(secret, "msg_p5jXN8AQM9LWM0D4loKWxJek", "1614265330", []byte(`{"test": 2432232314}`))
	if want := "v1,g0hM9SsE+OTPJTGt/tmIKtSyZlE3uFJELVlNIOLJ1OE="; got != want {
		t.Errorf("signature %q, want %q", got, want)
	}
}

// A redirect is not followed, and each answer but 2xx is a failure.
func TestRedirectsAndRefusals(t *testing.T) {
	reached := false
	srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		switch r.URL.Path {
		case "/redirect":
			http.Redirect(w, r, "/there", http.StatusTemporaryRedirect)
		case "/there":
			reached = true
		default:
			w.WriteHeader(http.StatusInternalServerError)
		}
	}))
	defer srv.Close()
	for path, want := range map[string]string{"/redirect": "no redirect", "/broken": "answered 500"} {
		if err := sender(t, srv.URL+path, true).Send(t.Context(), reply("webhook:orders")); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v, want %q", path, err, want)
		}
	}
	if reached {
		t.Error("the redirect was followed")
	}
}

// A private address is refused at the moment of the connection, whatever the name of the host is.
func TestPrivateAddresses(t *testing.T) {
	reached := false
	srv := httptest.NewTLSServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { reached = true }))
	defer srv.Close()
	for _, url := range []string{srv.URL, strings.Replace(srv.URL, "127.0.0.1", "localhost", 1)} {
		if err := sender(t, url, false).Send(t.Context(), reply("webhook:orders")); !errors.Is(err, ErrPrivate) {
			t.Errorf("%s: %v, want %v", url, err, ErrPrivate)
		}
	}
	if reached {
		t.Error("the request was sent")
	}
	for addr, want := range map[string]bool{
		"10.1.2.3": false, "172.16.0.1": false, "192.168.1.1": false, "127.0.0.1": false, "169.254.169.254": false, "0.0.0.0": false, "100.64.0.1": false, "::1": false,
		"fe80::1": false, "fd00::1": false, "::ffff:10.0.0.1": false, "64:ff9b::a00:1": false, "224.0.0.1": false, "255.255.255.255": false, "2002:a00:1::": false,
		"8.8.8.8": true, "172.32.0.1": true, "2606:4700::1111": true,
	} {
		if got := public(netip.MustParseAddr(addr)); got != want {
			t.Errorf("%s is public: %t, want %t", addr, got, want)
		}
	}
}

// A submitter can name only a configured sink, or a URL of a configured host. A sink without a good
// secret or with plain http is no sink.
func TestWhatIsAllowed(t *testing.T) {
	x, err := New(Config{
		Sinks: map[string]Sink{"orders": {URL: "https://orders.example/in", Secret: []byte(key)}},
		Hosts: map[string]Sink{"hooks.example": {Secret: []byte(key)}},
	})
	if err != nil {
		t.Fatal(err)
	}
	for sink, ok := range map[string]bool{
		"table:q": true, "webhook:orders": true, "webhook:other": false, "webhook:https://hooks.example/a?b=c": true, "webhook:https://HOOKS.example/": true,
		"webhook:http://hooks.example/a": false, "webhook:https://hooks.example:8443/": false, "webhook:https://hooks.example.evil/": false, "webhook:https://evil/?hooks.example": false,
	} {
		if err := x.Check(sink); (err == nil) != ok {
			t.Errorf("%s: %v", sink, err)
		}
		if err := x.Send(t.Context(), reply(sink)); err == nil {
			t.Errorf("%s was sent", sink)
		} else if !ok && strings.Contains(err.Error(), "send a reply") {
			t.Errorf("%s was tried: %v", sink, err)
		}
	}
	for name, s := range map[string]Sink{"short secret": {URL: "https://a.example", Secret: []byte("x")}, "http": {URL: "http://a.example", Secret: []byte(key)}, "user": {URL: "https://u:p@a.example", Secret: []byte(key)}} {
		if _, err := New(Config{Sinks: map[string]Sink{"a": s}}); err == nil {
			t.Errorf("%s is accepted", name)
		}
	}
	for sink, ok := range map[string]bool{
		"": true, "table:a-b.c_1": true, "table:": false, "table:a b": false, "mail:x": false, "webhook:": false, "webhook:ftp://x/": false, "webhook:https://u:p@x/": false,
		"webhook:https://x/#f": false, "table:" + strings.Repeat("a", 101): false,
	} {
		if err := replies.Check(sink, ""); (err == nil) != ok {
			t.Errorf("%q: %v", sink, err)
		}
	}
	if replies.Check("table:q", strings.Repeat("x", 201)) == nil || replies.Check("table:q", "a\x00") == nil || replies.Check("", "x") == nil {
		t.Error("a bad correlation id is accepted")
	}
}
