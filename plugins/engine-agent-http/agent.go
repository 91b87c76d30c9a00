package main

import (
	"context"
	"encoding/json"
	"errors"
	"net/http"
	"slices"

	"github.com/saga-engine/engine/sdk"
)

const version = "0.1.0"

// callIn holds the inputs that are common to all actions.
type callIn struct {
	URL               string            `agent:"url" doc:"Absolute, or relative to base_url."`
	Query             map[string]string `agent:"query,optional" doc:"Added to the URL's own query."`
	Headers           map[string]string `agent:"headers,optional,sensitive" doc:"Added to the agent's headers; replace those with the same name."`
	Expect            []string          `agent:"expect,optional" pattern:"[1-5]([0-9]{2}|[0-9][xX]|[xX]{2})" doc:"Statuses that are results, such as 200 or \"3xx\"; default 2xx."`
	Errors            map[string]string `agent:"errors,optional,codes" pattern:"[1-5]([0-9]{2}|[0-9][xX]|[xX]{2})" doc:"Status or pattern to error code. A status listed here is a definite failure: nothing was done."`
	Response          string            `agent:"response,optional" default:"auto" enum:"auto|json|text|none" doc:"How the response's body is returned; auto uses its content type."`
	IdempotencyHeader *string           `agent:"idempotency_header,optional" doc:"Header that carries the idempotency key; \"\" = none. Default: the agent's."`
}

// readIn is the input of the actions `get` and `head`.
type readIn struct {
	callIn
	FollowRedirects bool `agent:"follow_redirects,optional" default:"true" doc:"Follow redirects to the same host."`
}

// writeIn is the input of the actions that change something at the service.
type writeIn struct {
	callIn
	JSON        json.RawMessage   `agent:"json,optional" doc:"Body, sent as JSON. At most one of json, form and body."`
	Form        map[string]string `agent:"form,optional" doc:"Body, sent as a form."`
	Body        *string           `agent:"body,optional" doc:"Body, sent unchanged."`
	ContentType string            `agent:"content_type,optional" doc:"Content type of the body; default: the type of json, form or body."`
}

// requestIn is the input of the action `request`.
type requestIn struct {
	writeIn
	Method string `agent:"method" doc:"Any method, such as PUT."`
}

// callOut is the output of all actions.
type callOut struct {
	Status  int               `agent:"status"`
	Headers map[string]string `agent:"headers" doc:"By lower-case name; several values are joined by a comma."`
	JSON    any               `agent:"json" doc:"The body, if it is JSON."`
	Body    string            `agent:"body" doc:"The body as text."`
	Base64  bool              `agent:"base64" doc:"The body was not text: body holds it in base64."`
}

// agent holds the configuration and the HTTP client of the agent's process. The method
// `configure` sets both.
type agent struct {
	conf config
	// The client itself follows no redirects: the method `do` follows them.
	client *http.Client
}

// newAgent declares the agent: its actions, inputs and error codes.
func newAgent() *sdk.Agent {
	a := sdk.New("http", version).Doc("Calls services over HTTP.")
	h := &agent{}
	sdk.Configure(a, h.configure)
	// Only the actions `get` and `head` are declared with sdk.Cancellable, because they change
	// nothing. The outcome of an interrupted POST, PUT, PATCH or DELETE is unknown.
	codes := []sdk.Option{sdk.Errors(codeNotFound, codeConflict), sdk.AnyErrors()}
	with := func(opts ...sdk.Option) []sdk.Option { return slices.Concat(codes, opts) }

	sdk.Action(a, "get", h.read(http.MethodGet),
		with(sdk.ReadOnly(), sdk.Idempotent(), sdk.Cancellable(), sdk.Doc("Reads a resource. Any failure means that nothing was changed."))...)
	sdk.Action(a, "head", h.read(http.MethodHead),
		with(sdk.ReadOnly(), sdk.Idempotent(), sdk.Cancellable(), sdk.Doc("Reads a resource's headers."))...)
	sdk.Action(a, "put", h.write(http.MethodPut),
		with(sdk.Idempotent(), sdk.Doc("Replaces a resource. Declared idempotent, as RFC 9110 defines the method."))...)
	sdk.Action(a, "delete", h.write(http.MethodDelete),
		with(sdk.Idempotent(), sdk.Doc("Deletes a resource. Declared idempotent, as RFC 9110 defines the method; list 404 in expect if absence is success."))...)
	sdk.Action(a, "post", h.write(http.MethodPost),
		with(sdk.Doc("Sends a POST. Write idempotent = true on the step if the service honours the idempotency header."))...)
	sdk.Action(a, "patch", h.write(http.MethodPatch),
		with(sdk.Doc("Sends a PATCH. Write idempotent = true on the step if repeating it is safe."))...)
	sdk.Action(a, "request", h.request,
		with(sdk.Doc("Sends a request with any method; idempotent = true and read_only = true on the step are the author's promise."))...)
	return a
}

func (h *agent) read(method string) func(context.Context, *sdk.Call, readIn) (callOut, error) {
	return func(ctx context.Context, c *sdk.Call, in readIn) (callOut, error) {
		out, err := h.do(ctx, c, exchange{callIn: in.callIn, method: method, follow: in.FollowRedirects})
		return out, nothingDone(err)
	}
}

func (h *agent) write(method string) func(context.Context, *sdk.Call, writeIn) (callOut, error) {
	return func(ctx context.Context, c *sdk.Call, in writeIn) (callOut, error) {
		body, err := in.body()
		if err != nil {
			return callOut{}, err
		}
		out, err := h.do(ctx, c, exchange{callIn: in.callIn, method: method, body: body})
		return out, maybeDone(err)
	}
}

func (h *agent) request(ctx context.Context, c *sdk.Call, in requestIn) (callOut, error) {
	return h.write(in.Method)(ctx, c, in.writeIn)
}

// timeout returns a context that ends after the timeout of the config {} block. If the block
// has no timeout, it returns ctx.
func (h *agent) timeout(ctx context.Context) (context.Context, context.CancelFunc) {
	if h.conf.Timeout <= 0 {
		return ctx, func() {}
	}
	return context.WithTimeoutCause(ctx, h.conf.Timeout, errTimeout)
}

var errTimeout = errors.New("no complete response within the agent's timeout")
