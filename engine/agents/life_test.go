package agents

import (
	"testing"

	"github.com/saga-engine/engine/dsl"
	"github.com/saga-engine/engine/engine/invoke"
)

// A call that is answered while its complete-by passes is not listened to any
// more: counted for ever, enough of them would keep late answers of a process
// from being heard.
func TestAnsweredAsItExpires(t *testing.T) {
	p := NewPool(Options{})
	defer p.Close()
	a := newAgent(p, invoke.AgentSpec{Agent: &dsl.Agent{Name: "a"}})
	l := &life{instance: a.instances[0], empty: make(chan struct{})}
	for range 2 * maxListening {
		f := &activeCall{agent: a, life: l, counted: true}
		l.calls++
		f.leave() // the answer came first
		if listen := l.expires(f); listen != 0 {
			t.Errorf("it is listened to for %s", listen)
			break
		}
	}
	if l.listening != 0 || l.calls != 0 {
		t.Errorf("%d calls are listened to, %d under way, want none", l.listening, l.calls)
	}
}
