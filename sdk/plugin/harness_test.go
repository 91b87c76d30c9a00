package plugin

import (
	"context"
	"fmt"
	"strings"
	"testing"

	"github.com/saga-engine/engine/sdk/sdktest"
)

// S32: the agent of the documentation keeps every rule, as a real process
// behind the real handshake.
func TestDocumentedAgentPassesTheHarness(t *testing.T) {
	path := buildInventory(t)
	both(t, func(t *testing.T, protocol int) { testDocumentedAgent(t, path, protocol) })
}

func testDocumentedAgent(t *testing.T, path string, protocol int) {
	p, err := Open(t.Context(), OpenOptions{Path: path, Protocol: protocol})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = p.Close() })
	sdktest.RunTarget(t, p,
		sdktest.Case{Action: "reserve", Input: `{"sku":"lamp"}`},
		sdktest.Case{Name: "empty", Action: "reserve", Input: `{"sku":"none","qty":3}`, Code: "out_of_stock"},
		sdktest.Case{Action: "release"})
}

// The harness works on a process, and catches what a process does wrong.
func TestHarnessOnAProcess(t *testing.T) { both(t, testHarnessOnAProcess) }

func testHarnessOnAProcess(t *testing.T, protocol int) {
	p := open(t, OpenOptions{Protocol: protocol})
	sdktest.RunTarget(t, p,
		sdktest.Case{Action: "slow", Input: `{"ms":20000}`, Slow: true},
		sdktest.Case{Action: "panic", Panics: true})
	problems := sdktest.Check(t.Context(), p,
		sdktest.Case{Action: "crash", Panics: true})
	if len(problems) != 1 || !strings.Contains(problems[0].String(), "agent_lost") {
		t.Errorf("problems of a crash = %v", problems)
	}
}

var _ sdktest.Target = (*Process)(nil)

type exampleT struct{}

func (exampleT) Helper()                           {}
func (exampleT) Context() context.Context          { return context.Background() }
func (exampleT) Errorf(format string, args ...any) { fmt.Printf(format+"\n", args...) }

// A binary is tested through the real handshake.
func ExampleProcess() {
	ctx := context.Background()
	p, err := Open(ctx, OpenOptions{Path: "engine-agent-inventory"})
	if err != nil {
		fmt.Println(err)
		return
	}
	defer p.Close()
	var t exampleT // a *testing.T in a test
	sdktest.RunTarget(t, p, sdktest.Case{Action: "reserve", Input: `{"sku":"lamp"}`})
}
