// Command engine-agent-teller is an agent of TestCanaries. Its action repeats its input in a
// heartbeat, in a checkpoint, and in the message of a failure.
package main

import (
	"context"

	"github.com/saga-engine/engine/sdk"
	"github.com/saga-engine/engine/sdk/plugin"
)

func main() { plugin.Serve(newAgent()) }

type tellIn struct {
	Text string `agent:"text"`
}

type tellOut struct {
	Text string `agent:"text"`
}

func newAgent() *sdk.Agent {
	a := sdk.New("teller", "0.1.0").Doc("Repeats its input wherever an agent can. For tests.")
	sdk.Action(a, "tell", tell, sdk.Idempotent(), sdk.AnyErrors(), sdk.Checkpoints(), sdk.Progress())
	return a
}

// tell fails in the first attempt, after a heartbeat and a checkpoint. The next attempt returns
// the data of this checkpoint.
func tell(_ context.Context, c *sdk.Call, in tellIn) (tellOut, error) {
	if _, blob, ok := c.LastCheckpoint(); ok {
		return tellOut{Text: string(blob)}, nil
	}
	c.Heartbeat(0.5, "busy with "+in.Text)
	if err := c.Checkpoint(1, []byte(in.Text)); err != nil {
		return tellOut{}, err
	}
	return tellOut{}, &sdk.Failure{Code: sdk.CodeUnavailable, Message: "not yet: " + in.Text}
}
