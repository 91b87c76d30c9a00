// Package webhook sends the replies of runs to webhooks.
//
// A Sender sends each reply in one signed HTTP request. The body is a CloudEvents 1.0 event in
// JSON. The signature follows Standard Webhooks. A submitter can name only a sink that the operator
// has configured, or a URL whose host the operator has configured. The package follows no redirect.
// Unless Config.Private is true, it refuses private addresses. Then it checks the address of each
// connection, so an attacker gains nothing if a host name later resolves to another address.
package webhook

import (
	"bytes"
	"context"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/netip"
	"net/url"
	"strconv"
	"strings"
	"syscall"
	"time"

	"github.com/saga-engine/engine/engine/store/replies"
)

// A Sink is a webhook that submitters can name, or a host to which their URLs may lead.
type Sink struct {
	URL    string // only for a named sink
	Secret []byte // signs each request; 24 to 64 bytes, as Standard Webhooks requires
}

// Config says which webhooks an engine accepts.
type Config struct {
	Sinks map[string]Sink // named sinks, by name
	// Hosts that URLs of submitters may have; the map key is HOST or HOST:PORT, in lower case.
	Hosts map[string]Sink
	// Private allows addresses of private networks and of this machine.
	Private bool
}

// A Sender sends replies. Several goroutines may use it.
type Sender struct {
	cfg    Config
	client *http.Client
	now    func() time.Time
}

// ErrPrivate is the error of a sink whose address is private.
var ErrPrivate = errors.New("the address is private, and the file of reply sinks does not allow private addresses")

// New returns a Sender. It returns an error if a sink is not valid.
func New(cfg Config) (*Sender, error) {
	check := func(what string, s Sink) error {
		if len(s.Secret) < 24 || len(s.Secret) > 64 {
			return fmt.Errorf("%s: its secret has %d bytes, and must have 24 to 64", what, len(s.Secret))
		}
		return nil
	}
	for name, s := range cfg.Sinks {
		if err := errors.Join(replies.Check(replies.Webhook+name, ""), check("sink "+strconv.Quote(name), s)); err != nil {
			return nil, err
		}
		if u, err := url.Parse(s.URL); err != nil || u.Scheme != "https" && (u.Scheme != "http" || !cfg.Private) || u.Host == "" || u.User != nil {
			return nil, fmt.Errorf("sink %q: its URL must be such as https://HOST/PATH, without a user; http is accepted only together with private = true", name)
		}
	}
	for host, s := range cfg.Hosts {
		if err := check("host "+strconv.Quote(host), s); err != nil {
			return nil, err
		}
	}
	x := &Sender{cfg: cfg, now: time.Now}
	dialer := &net.Dialer{Timeout: 5 * time.Second, Control: x.control}
	x.client = &http.Client{
		Timeout: 10 * time.Second,
		// No proxy: a proxy would connect to addresses that the method `control` does not see.
		Transport: &http.Transport{
			DialContext: dialer.DialContext, ForceAttemptHTTP2: true, TLSHandshakeTimeout: 5 * time.Second, ResponseHeaderTimeout: 10 * time.Second,
			MaxIdleConnsPerHost: 16, IdleConnTimeout: time.Minute, MaxResponseHeaderBytes: 64 << 10,
		},
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
	}
	return x, nil
}

// control refuses a connection to a private address, unless Config.Private is true. It gets the
// address to which the system is about to connect: the result of resolving the host name.
func (x *Sender) control(_, address string, _ syscall.RawConn) error {
	if x.cfg.Private {
		return nil
	}
	at, err := netip.ParseAddrPort(address)
	if err != nil {
		return fmt.Errorf("read the address of a sink: %w", err)
	}
	if !public(at.Addr()) {
		return ErrPrivate
	}
	return nil
}

// reserved lists networks that do not belong to the public internet, in addition to those that
// package netip knows.
var reserved = []netip.Prefix{
	netip.MustParsePrefix("0.0.0.0/8"), netip.MustParsePrefix("100.64.0.0/10"), netip.MustParsePrefix("192.0.0.0/24"), netip.MustParsePrefix("192.0.2.0/24"),
	netip.MustParsePrefix("198.18.0.0/15"), netip.MustParsePrefix("198.51.100.0/24"), netip.MustParsePrefix("203.0.113.0/24"), netip.MustParsePrefix("240.0.0.0/4"),
	netip.MustParsePrefix("64:ff9b::/96"), netip.MustParsePrefix("64:ff9b:1::/48"), netip.MustParsePrefix("100::/64"), netip.MustParsePrefix("2001::/23"),
	netip.MustParsePrefix("2001:db8::/32"), netip.MustParsePrefix("2002::/16"), netip.MustParsePrefix("fec0::/10"),
}

// public reports whether an address belongs to the public internet.
func public(a netip.Addr) bool {
	a = a.Unmap()
	if !a.IsGlobalUnicast() || a.IsPrivate() || a.IsLoopback() || a.IsLinkLocalUnicast() {
		return false
	}
	for _, p := range reserved {
		if p.Contains(a) {
			return false
		}
	}
	return true
}

// Check returns an error if the engine does not send replies to this sink. It returns nil for a
// sink that is no webhook.
func (x *Sender) Check(sink string) error {
	_, err := x.find(sink)
	return err
}

// find returns the URL and the secret of a sink. For a sink that is no webhook, it returns the zero
// Sink.
func (x *Sender) find(sink string) (Sink, error) {
	hook, is := strings.CutPrefix(sink, replies.Webhook)
	if !is {
		return Sink{}, nil
	}
	if !strings.Contains(hook, "/") {
		s, known := x.cfg.Sinks[hook]
		if !known {
			return Sink{}, fmt.Errorf("reply sink %q: the operator has configured no sink of this name", sink)
		}
		return s, nil
	}
	u, err := url.Parse(hook)
	if err != nil {
		return Sink{}, fmt.Errorf("reply sink %q: its URL cannot be read", sink)
	}
	s, known := x.cfg.Hosts[strings.ToLower(u.Host)]
	switch {
	case !known:
		return Sink{}, fmt.Errorf("reply sink %q: the operator does not allow the host %q", sink, u.Host)
	case u.Scheme != "https" && !x.cfg.Private:
		return Sink{}, fmt.Errorf("reply sink %q: its URL must begin with https", sink)
	}
	s.URL = hook
	return s, nil
}

// An event is the body of a request: a CloudEvents 1.0 event in JSON.
type event struct {
	SpecVersion string    `json:"specversion"`
	ID          string    `json:"id"`
	Source      string    `json:"source"`
	Type        string    `json:"type"`
	Subject     string    `json:"subject"`
	Time        time.Time `json:"time"`
	ContentType string    `json:"datacontenttype"`
	Sequence    string    `json:"sequence"`
	Data        data      `json:"data"`
}

// data holds the fields of the reply in the body of a request.
type data struct {
	Run         string    `json:"run"`
	Workflow    string    `json:"workflow"`
	Key         string    `json:"key"`
	Correlation string    `json:"correlation"`
	Seq         int32     `json:"seq"`
	Status      string    `json:"status"`
	At          time.Time `json:"at"`
}

// Send sends a reply. It returns nil if the sink has answered with a status from 200 to 299.
func (x *Sender) Send(ctx context.Context, r replies.Reply) error {
	to, err := x.find(r.Sink)
	if err != nil {
		return err
	}
	if to.URL == "" {
		return fmt.Errorf("reply sink %q is no webhook", r.Sink)
	}
	id := r.Name + "." + strconv.Itoa(int(r.N)) // the id is the same in each try
	body, err := json.Marshal(event{
		SpecVersion: "1.0", ID: id, Source: "/engine/workflows/" + r.Workflow, Type: "engine.run." + r.State, Subject: r.Name, Time: r.At,
		ContentType: "application/json", Sequence: strconv.Itoa(int(r.N)),
		Data: data{Run: r.Name, Workflow: r.Workflow, Key: r.Key, Correlation: r.Correlation, Seq: r.N, Status: r.State, At: r.At},
	})
	if err != nil {
		return fmt.Errorf("encode a reply: %w", err)
	}
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, to.URL, bytes.NewReader(body))
	if err != nil {
		return errors.New("the URL of the reply sink cannot be used")
	}
	stamp := strconv.FormatInt(x.now().Unix(), 10)
	req.Header.Set("Content-Type", "application/cloudevents+json")
	req.Header.Set("User-Agent", "engine")
	req.Header.Set("webhook-id", id)
	req.Header.Set("webhook-timestamp", stamp)
	req.Header.Set("webhook-signature", Signature(to.Secret, id, stamp, body))
	res, err := x.client.Do(req)
	if err != nil {
		var why *url.Error
		if errors.As(err, &why) { // the text of `why` contains the URL, which may hold a secret
			err = why.Err
		}
		return fmt.Errorf("send a reply: %w", err)
	}
	defer res.Body.Close()
	// Read the rest of a short response, so that the connection can be used again.
	if _, err := io.CopyN(io.Discard, res.Body, 4<<10); err != nil && !errors.Is(err, io.EOF) {
		return fmt.Errorf("send a reply: %w", err)
	}
	switch {
	case res.StatusCode >= 200 && res.StatusCode < 300:
		return nil
	case res.StatusCode >= 300 && res.StatusCode < 400:
		return fmt.Errorf("the sink answered %d: engines follow no redirect", res.StatusCode)
	}
	return fmt.Errorf("the sink answered %d", res.StatusCode)
}

// Signature returns the value of the header webhook-signature for a request, as Standard Webhooks
// defines it: v1, and the HMAC-SHA256 of ID.TIMESTAMP.BODY in base64.
func Signature(secret []byte, id, timestamp string, body []byte) string {
	mac := hmac.New(sha256.New, secret)
	for _, part := range [][]byte{[]byte(id), []byte("."), []byte(timestamp), []byte("."), body} {
		mac.Write(part)
	}
	return "v1," + base64.StdEncoding.EncodeToString(mac.Sum(nil))
}
