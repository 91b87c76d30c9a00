package plugin

import (
	"context"
	"log/slog"
	"strings"
	"testing"
	"time"

	"github.com/saga-engine/engine/sdk"
)

// A definite failure stays definite if its data are too large: only the data are left out, and the
// message says so. A result that is too large has an unknown outcome, because the engine cannot
// have its output.
func TestLargeDataOfAFailure(t *testing.T) {
	a := sdk.New("test", "1.0.0")
	type none = sdk.None
	sdk.Action(a, "refuse", func(context.Context, *sdk.Call, none) (none, error) {
		return none{}, &sdk.Failure{Code: "sold_out", Message: "no lamps", Permanent: true, Data: strings.Repeat("x", 60<<10)}
	}, sdk.Errors("sold_out"))
	schema, err := a.Schema()
	if err != nil {
		t.Fatal(err)
	}
	for limit, whole := range map[int]bool{1 << 10: false, 64 << 10: true} {
		p := hostOf(t, newServer(a, schema, newLife(""), slog.New(slog.DiscardHandler), limit))
		p.schema = schema
		for name, call := range map[string]func() (sdk.Reply, error){
			"in a session": func() (sdk.Reply, error) { return p.Invoke(t.Context(), request("refuse", `{}`), nil) },
			"alone": func() (sdk.Reply, error) {
				c := &call{process: p, req: request("refuse", `{}`)}
				c.start, c.left = time.Now(), time.Minute
				return c.unary(t.Context())
			},
		} {
			reply, err := call()
			if err != nil || reply.Outcome != sdk.OutcomeFailed || reply.Code != "sold_out" || !reply.Permanent || !strings.HasSuffix(reply.Message, "no lamps") {
				t.Errorf("limit %d, %s: %+v, %v; want the definite failure", limit, name, reply, err)
			}
			if (len(reply.Output) > 0) != whole || strings.Contains(reply.Message, "61442 bytes") == whole {
				t.Errorf("limit %d, %s: %d bytes of data, message %q", limit, name, len(reply.Output), reply.Message)
			}
		}
	}
	s := newServer(a, schema, newLife(""), slog.New(slog.DiscardHandler), 10)
	if r := s.fit(sdk.Reply{Outcome: sdk.OutcomeResult, Output: []byte(`{"text":"long"}`)}); r.Outcome != sdk.OutcomeUnknown || r.Code != sdk.CodeBadReply {
		t.Errorf("a large result becomes %+v", r)
	}
}
