// Command engine-agent-theatre is an agent that holds seats in a theatre. It shows what your own
// agent needs: typed functions, a schema from struct tags, an undo by key, and a test.
package main

import (
	"context"
	"errors"

	"github.com/saga-engine/engine/sdk"
	"github.com/saga-engine/engine/sdk/plugin"
)

// config holds the values of the agent's config block in a workflow.
type config struct {
	Dir string `agent:"dir" doc:"Directory that stands for the theatre."`
}

type holdIn struct {
	Seat string `agent:"seat" doc:"Row and number, such as B7."`
}

type holdOut struct {
	Ticket string `agent:"ticket"`
}

// releaseIn has no fields: the agent finds the seat by the key of the call that held the seat. So
// the agent can undo a hold even if the answer of that call was lost.
type releaseIn struct{}

func main() { plugin.Serve(newAgent()) }

func newAgent() *sdk.Agent {
	a := sdk.New("theatre", "0.1.0").Doc("Holds seats in a theatre.")
	var house *theatre
	sdk.Configure(a, func(_ context.Context, c config) (err error) {
		house, err = open(c.Dir)
		return err
	})
	sdk.Action(a, "hold", func(_ context.Context, c *sdk.Call, in holdIn) (holdOut, error) {
		ticket, err := house.Hold(c.IdempotencyKey, in.Seat)
		// After errTaken, errReleased and errNoSeat it is certain that nothing was done. After any
		// other error the outcome is unknown, and the engine calls the agent again to find it out.
		err = sdk.Code(err, errTaken, "taken")
		err = sdk.Code(err, errReleased, "released")
		if errors.Is(err, errNoSeat) {
			err = &sdk.Failure{Code: sdk.CodeInvalid, Err: err, Permanent: true}
		}
		return holdOut{Ticket: ticket}, err
	}, sdk.Idempotent(), sdk.CompensatedBy("release"), sdk.Errors("taken", "released"), sdk.Doc("Holds a seat."))
	sdk.Action(a, "release", func(_ context.Context, c *sdk.Call, _ releaseIn) (sdk.None, error) {
		return sdk.None{}, house.Release(c.ForwardKey)
	}, sdk.Idempotent(), sdk.ByKey(), sdk.Doc("Gives up the seat that a hold took, if it took one."))
	return a
}
