//go:build unix

package agents_test

import (
	"strings"
	"sync"
	"testing"

	"github.com/saga-engine/engine/engine/agents"
	"github.com/saga-engine/engine/engine/invoke"
	"github.com/saga-engine/engine/engine/machine/status"
	"github.com/saga-engine/engine/engine/store"
	"github.com/saga-engine/engine/sdk"
)

// TestPanicOfProcess: what a process prints when it panics is in the logs of the
// run whose call it has, line by line, without the call's secrets.
func TestPanicOfProcess(t *testing.T) {
	var mu sync.Mutex
	var lines []store.LogLine
	w := newWorld(t, agents.Options{LogSink: func(l store.LogLine) {
		mu.Lock()
		defer mu.Unlock()
		lines = append(lines, l)
	}})
	reply, err := w.Invoke(t.Context(), call(mock("m"), "junk", `{"text":"the word is hunter2","panic":true}`, func(c *invoke.Call) {
		c.Run, c.Scrub = status.RunID(77), strings.NewReplacer("hunter2", "(sensitive)").Replace
	}))
	if err == nil && reply.Code != sdk.CodeAgentLost {
		t.Fatalf("reply: %+v", reply)
	}
	has := func(level, text string) bool {
		mu.Lock()
		defer mu.Unlock()
		for _, l := range lines {
			if l.Level == level && strings.HasPrefix(l.Message, text) {
				return true
			}
		}
		return false
	}
	for _, want := range [][2]string{
		{"info", "the word is (sensitive) stream="}, {"error", "panic: the word is (sensitive)"}, {"error", "goroutine "}, {"error", "created by "},
	} {
		poll(t, "the line "+want[1], func() bool { return has(want[0], want[1]) })
	}
	w.Close()
	for _, l := range lines {
		if l.Run != 77 || l.Step != "s" || l.Attempt != 1 || strings.Contains(l.Message+w.log.String(), "hunter2") {
			t.Errorf("line: %+v", l)
		}
	}
}
