package main

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"net/http"
	"net/http/httptrace"
	"net/url"
	"strings"
	"sync/atomic"

	"github.com/saga-engine/engine/sdk"
)

// maxRedirects is the largest number of redirects that get and head follow.
const maxRedirects = 10

// exchange holds the inputs of one call, and the method and body of its request.
type exchange struct {
	callIn
	method string
	body   body
	follow bool // follow redirects to the same origin
}

// body is the body of a request. The zero value means that the request has no body.
type body struct {
	data        []byte
	contentType string
	present     bool
}

// body returns the body of the request. If the inputs are wrong, the error is a definite
// failure, because nothing was sent.
func (in writeIn) body() (body, error) {
	var b body
	given := 0
	if in.JSON != nil {
		given++
		b = body{data: in.JSON, contentType: "application/json", present: true}
	}
	if in.Form != nil {
		given++
		values := url.Values{}
		for k, v := range in.Form {
			values.Set(k, v)
		}
		b = body{data: []byte(values.Encode()), contentType: "application/x-www-form-urlencoded", present: true}
	}
	if in.Body != nil {
		given++
		b = body{data: []byte(*in.Body), contentType: "text/plain; charset=utf-8", present: true}
	}
	if given > 1 {
		return body{}, invalid("only one of json, form and body can be sent")
	}
	if in.ContentType != "" {
		b.contentType = in.ContentType
	}
	return b, nil
}

// do sends the request and follows redirects if x.follow is true. It returns an output if the
// response counts as a result, and otherwise an error.
func (h *agent) do(ctx context.Context, c *sdk.Call, x exchange) (callOut, error) {
	rules := rulesOf(x.Expect, x.Errors)
	u, err := h.target(x.URL, x.Query)
	if err != nil {
		return callOut{}, err
	}
	ctx, cancel := h.timeout(ctx)
	defer cancel()
	var connected atomic.Bool
	ctx = httptrace.WithClientTrace(ctx, &httptrace.ClientTrace{
		GotConn: func(httptrace.GotConnInfo) { connected.Store(true) },
	})
	for redirects := 0; ; redirects++ {
		resp, err := h.send(ctx, c, x, u)
		if err != nil {
			return callOut{}, transportError(ctx, x.method, u, err, connected.Load())
		}
		if resp.StatusCode == http.StatusSwitchingProtocols {
			// This also closes the connection. After status 101 the connection carries another
			// protocol.
			_ = resp.Body.Close()
			return callOut{}, &doubtful{code: sdk.CodeUnavailable, err: fmt.Errorf(
				"%s %s: 101 Switching Protocols; the agent speaks nothing but HTTP, so it has closed the connection", x.method, u.Host)}
		}
		next := redirect(u, resp)
		if !x.follow || next == nil || redirects == maxRedirects {
			return h.judge(ctx, c, x, rules, u, resp)
		}
		_ = resp.Body.Close() // the body of a redirect is not needed
		u = next
	}
}

// target returns the URL of the request. If the agent has a base_url, target returns an error
// for a URL with another origin. The reason: the agent's headers may hold credentials, which
// the agent must send only to the origin of base_url.
func (h *agent) target(text string, query map[string]string) (*url.URL, error) {
	u, err := url.Parse(text)
	if err != nil {
		return nil, invalid("url: is not a URL")
	}
	if base := h.conf.base; base != nil {
		if !u.IsAbs() && u.Host == "" {
			u = relative(base, u)
		}
		if !sameOrigin(base, u) {
			return nil, invalid("url: is not below the agent's base_url")
		}
	}
	if err := checkURL(u); err != nil {
		return nil, invalid("url: %v", err)
	}
	if len(query) > 0 {
		q := u.Query()
		for k, v := range query {
			q.Set(k, v)
		}
		u.RawQuery = q.Encode()
	}
	return u, nil
}

// relative returns the URL in the parameter `base` with the path and the query of u appended.
// "/orders" and "orders" both mean the path of base followed by /orders.
func relative(base, u *url.URL) *url.URL {
	out := base.JoinPath(u.EscapedPath())
	if u.Path == "" {
		out = new(url.URL)
		*out = *base
	}
	q := []string{}
	for _, part := range []string{base.RawQuery, u.RawQuery} {
		if part != "" {
			q = append(q, part)
		}
	}
	out.RawQuery = strings.Join(q, "&")
	return out
}

func sameOrigin(a, b *url.URL) bool {
	return a.Scheme == b.Scheme && strings.EqualFold(a.Host, b.Host)
}

// redirect returns the URL to which a response redirects. It returns nil if the response is not a
// redirect, if it has no valid header Location, or if the URL has another origin. The agent does
// not follow redirects to other origins, because its headers may hold credentials.
func redirect(from *url.URL, resp *http.Response) *url.URL {
	switch resp.StatusCode {
	case http.StatusMovedPermanently, http.StatusFound, http.StatusSeeOther,
		http.StatusTemporaryRedirect, http.StatusPermanentRedirect:
	default:
		return nil
	}
	to, err := resp.Location()
	if err != nil || !sameOrigin(from, to) {
		return nil
	}
	to.Fragment = ""
	return to
}

func (h *agent) send(ctx context.Context, c *sdk.Call, x exchange, u *url.URL) (*http.Response, error) {
	var reader io.Reader
	if x.body.present {
		reader = bytes.NewReader(x.body.data)
	}
	req, err := http.NewRequestWithContext(ctx, x.method, u.String(), reader)
	if err != nil {
		return nil, &buildError{err}
	}
	if x.body.contentType != "" {
		req.Header.Set("Content-Type", x.body.contentType)
	}
	req.Header.Set("User-Agent", "engine-agent-http/"+version)
	for _, headers := range []map[string]string{h.conf.Headers, x.Headers} {
		for k, v := range headers {
			if strings.EqualFold(k, "Host") {
				req.Host = v
				continue
			}
			if strings.EqualFold(k, "Idempotency-Key") || strings.EqualFold(k, "X-Idempotency-Key") {
				setOwn(req.Header, k, v)
				continue
			}
			req.Header.Set(k, v)
		}
	}
	key := h.conf.IdempotencyHeader
	if x.IdempotencyHeader != nil {
		key = *x.IdempotencyHeader
	}
	setOwn(req.Header, key, c.IdempotencyKey)
	setOwn(req.Header, h.conf.ForwardKeyHeader, c.ForwardKey)
	return h.client.Do(req)
}

// setOwn sets a header, with its name in lower case. It does nothing if the parameter `name` or the
// parameter `value` is "". The reason for the lower case: net/http may repeat a request that has
// the header Idempotency-Key in exactly this spelling. But only the engine may repeat a call,
// because the engine records every attempt. Services ignore the case of header names.
func setOwn(h http.Header, name, value string) {
	if name == "" || value == "" {
		return
	}
	h.Del(name)
	h[strings.ToLower(name)] = []string{value}
}

// buildError is the error if net/http cannot make a request from the inputs.
type buildError struct{ err error }

func (e *buildError) Error() string { return e.err.Error() }
func (e *buildError) Unwrap() error { return e.err }
