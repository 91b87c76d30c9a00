package main

import (
	"bytes"
	"context"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"mime"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/saga-engine/engine/sdk"
)

// judge reads a response and decides the outcome of the call. It returns the output, a definite
// failure or a doubtful error.
func (h *agent) judge(ctx context.Context, c *sdk.Call, x exchange, r rules, u *url.URL, resp *http.Response) (callOut, error) {
	defer resp.Body.Close() //nolint:errcheck // the body has been read
	data, err := io.ReadAll(io.LimitReader(resp.Body, int64(h.conf.MaxResponseBytes)+1))
	result, code := r.judge(resp.StatusCode)
	if !result {
		whole := err == nil && len(data) <= h.conf.MaxResponseBytes
		r := reply{resp: resp, body: data, data: failureData(c, x.Response, resp.Header.Get("Content-Type"), data, whole)}
		return callOut{}, r.refusal(c, x.method, u, code)
	}
	switch {
	case err != nil:
		return callOut{}, transportError(ctx, x.method, u, fmt.Errorf("read the response: %w", err), true)
	case len(data) > h.conf.MaxResponseBytes:
		return callOut{}, &doubtful{code: sdk.CodeBadReply, err: fmt.Errorf(
			"%s %s: the response is larger than max_response_bytes = %d", x.method, u.Host, h.conf.MaxResponseBytes)}
	}
	out := callOut{Status: resp.StatusCode, Headers: headers(resp.Header)}
	if err := out.read(x.Response, resp.Header.Get("Content-Type"), data); err != nil {
		return callOut{}, &doubtful{code: sdk.CodeBadReply, err: fmt.Errorf("%s %s: %w", x.method, u.Host, err)}
	}
	return out, nil
}

func headers(h http.Header) map[string]string {
	m := make(map[string]string, len(h))
	for k, v := range h {
		m[strings.ToLower(k)] = strings.ToValidUTF8(strings.Join(v, ", "), "\uFFFD")
	}
	return m
}

// read stores the body in the output. The parameter `how` is the input `response`: it says in
// which form the output holds the body. The method `read` returns an error if the body does
// not have this form.
func (out *callOut) read(how, contentType string, data []byte) error {
	if how == "none" {
		return nil
	}
	if how == "json" || how == "auto" && isJSON(contentType) && len(bytes.TrimSpace(data)) > 0 {
		tree, err := parseJSON(data)
		if err != nil && how == "json" {
			return errors.New("the response is not JSON")
		}
		if err == nil {
			out.JSON = tree
		}
		if how == "json" {
			return nil
		}
	}
	if utf8.Valid(data) {
		out.Body = string(data)
		return nil
	}
	if how == "text" {
		return errors.New("the response is not text in UTF-8")
	}
	out.Body, out.Base64 = base64.StdEncoding.EncodeToString(data), true
	return nil
}

func isJSON(contentType string) bool {
	t, _, err := mime.ParseMediaType(contentType)
	return err == nil && (t == "application/json" || strings.HasSuffix(t, "+json"))
}

// parseJSON parses one JSON document. Numbers keep their exact form. parseJSON returns an error if
// `data` is not JSON, or contains more than one document.
func parseJSON(data []byte) (any, error) {
	dec := json.NewDecoder(bytes.NewReader(data))
	dec.UseNumber()
	var tree any
	if err := dec.Decode(&tree); err != nil {
		return nil, err
	}
	if _, err := dec.Token(); !errors.Is(err, io.EOF) {
		return nil, errors.New("more than one JSON document")
	}
	return tree, nil
}

// A reply is a response whose status does not count as a result.
type reply struct {
	resp *http.Response
	body []byte // the body; only its beginning if it is too large or cannot be read to its end
	data any    // what the workflow reads as error.data (failureData); nil = no data
}

// refusal returns the error for the reply. The parameter `code` is the error code that the input
// `errors` gives to the status of the reply; "" = `errors` does not list this status.
func (r reply) refusal(c *sdk.Call, method string, u *url.URL, code string) error {
	status := r.resp.StatusCode
	after := retryAfter(r.resp.Header.Get("Retry-After"), time.Now())
	err := fmt.Errorf("%s %s: %d %s%s", method, u.Host, status, http.StatusText(status), excerpt(c, r.body))
	failure := func(code string, permanent bool) error {
		return &sdk.Failure{Code: code, Permanent: permanent, RetryAfter: after, Err: err, Data: r.data}
	}
	if code != "" {
		return failure(code, false)
	}
	switch status {
	case http.StatusTooManyRequests:
		return failure(sdk.CodeRateLimited, false)
	case http.StatusTooEarly:
		return failure(sdk.CodeUnavailable, false)
	case http.StatusUnauthorized, http.StatusForbidden, http.StatusProxyAuthRequired:
		return failure(sdk.CodeDenied, true)
	case http.StatusNotFound, http.StatusGone:
		return failure(codeNotFound, false)
	case http.StatusConflict, http.StatusPreconditionFailed, http.StatusLocked:
		return failure(codeConflict, false)
	case http.StatusRequestTimeout, http.StatusBadGateway, http.StatusServiceUnavailable, http.StatusGatewayTimeout:
		return &doubtful{code: sdk.CodeUnavailable, after: after, err: err, data: r.data}
	}
	if status >= 400 && status <= 499 {
		return failure(sdk.CodeInvalid, true)
	}
	return &doubtful{code: sdk.CodeInternal, after: after, err: err, data: r.data}
}

// maxExcerpt is the largest number of bytes of the body in an error message.
const maxExcerpt = 300

// excerpt returns ": " and the beginning of a body, for a message; "" if the body is empty or not
// text. The SDK cuts the text in such a way that the engine still recognises secrets in the text.
// Control characters stay in the text, too, so that secrets stay recognisable. The commands that
// show the message replace these characters.
func excerpt(c *sdk.Call, data []byte) string {
	text := strings.TrimSpace(string(data))
	short := strings.TrimSpace(c.Excerpt(text, maxExcerpt))
	switch {
	case short == "" || !utf8.Valid(data) || bytes.IndexByte(data, 0) >= 0:
		return ""
	case len(text) > maxExcerpt:
		short += "…"
	}
	return ": " + short
}

// maxRetryAfter is the longest wait that the agent accepts from a service.
const maxRetryAfter = 24 * time.Hour

// retryAfter returns the wait for which the header Retry-After asks, in seconds or as a date.
// The parameter `text` is the value of the header. If it is neither a number of seconds nor a
// date, retryAfter returns 0.
func retryAfter(text string, now time.Time) time.Duration {
	if text == "" {
		return 0
	}
	if s, err := strconv.Atoi(text); err == nil {
		return min(max(time.Duration(min(s, 1<<30))*time.Second, 0), maxRetryAfter)
	}
	if at, err := http.ParseTime(text); err == nil {
		return min(max(at.Sub(now), 0), maxRetryAfter)
	}
	return 0
}
