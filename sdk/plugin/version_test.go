package plugin

import (
	"os"
	"testing"

	"github.com/saga-engine/engine/sdk"
)

// The newest version that both sides speak is used: an agent of yesterday works
// with this engine, and one of today with an engine of yesterday.
func TestProtocolIsAgreedOn(t *testing.T) {
	for name, test := range map[string]struct {
		mode   string
		newest int // that the engine speaks
		want   int
	}{
		"both new":              {"agent", 0, ProtocolBatched},
		"old agent, new engine": {"old", 0, ProtocolUnary},
		"new agent, old engine": {"agent", ProtocolUnary, ProtocolUnary},
		"both old":              {"old", ProtocolUnary, ProtocolUnary},
	} {
		t.Run(name, func(t *testing.T) {
			p, err := Open(t.Context(), OpenOptions{Path: os.Args[0], Env: []string{envMode + "=" + test.mode}, Protocol: test.newest})
			if err != nil {
				t.Fatal(err)
			}
			t.Cleanup(func() { _ = p.Close() })
			if got := p.Protocol(); got != test.want || (p.liveSession() != nil) != (test.want == ProtocolBatched) {
				t.Errorf("protocol %d, session %t; want %d", got, p.liveSession() != nil, test.want)
			}
			events := 0
			r, err := p.Invoke(t.Context(), request("slow", `{"ms":60}`), func(sdk.Event) { events++ })
			if err != nil || r.Outcome != sdk.OutcomeResult || events == 0 {
				t.Errorf("reply = %+v, %v after %d events", r, err, events)
			}
		})
	}
}
