package sdk_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"github.com/saga-engine/engine/sdk"
)

var errSoldOut = errors.New("sold out")

// The types of an action; their tags make the schema.
type ReserveIn struct {
	SKU string `agent:"sku" doc:"Stock keeping unit."`
	Qty int    `agent:"qty,optional" default:"1"`
}

type Reservation struct {
	ID string `agent:"reservation_id"`
}

func reserve(_ context.Context, c *sdk.Call, in ReserveIn) (Reservation, error) {
	if in.SKU == "lamp" {
		return Reservation{}, sdk.Code(errSoldOut, errSoldOut, "out_of_stock")
	}
	return Reservation{ID: fmt.Sprintf("%d x %s for %s", in.Qty, in.SKU, c.IdempotencyKey)}, nil
}

func ExampleAction() {
	a := sdk.New("inventory", "0.1.0")
	sdk.Action(a, "reserve", reserve, sdk.Idempotent(), sdk.Errors("out_of_stock"))

	for _, input := range []string{`{"sku":"chair"}`, `{"sku":"lamp"}`, `{"skew":"chair"}`} {
		reply, _ := a.Invoke(context.Background(), sdk.Request{
			Action: "reserve", Purpose: sdk.PurposeDo, Input: json.RawMessage(input),
			IdempotencyKey: "key-1", CompleteBy: time.Now().Add(time.Minute),
		}, sdk.InvokeOptions{})
		if reply.Outcome == sdk.OutcomeResult {
			fmt.Println(string(reply.Output))
		} else {
			fmt.Printf("%s: %s\n", reply.Code, reply.Message)
		}
	}
	// Output:
	// {"reservation_id":"1 x chair for key-1"}
	// out_of_stock: sold out
	// invalid: input: skew: is not known
}

func ExampleAgent_Schema() {
	a := sdk.New("inventory", "0.1.0")
	sdk.Action(a, "reserve", reserve, sdk.CompensatedBy("release"))
	_, err := a.Schema()
	fmt.Println(err)
	// Output:
	// sdk: agent inventory: action "reserve": compensated by "release", which is not an action of this agent
}

func ExampleUnknown() {
	err := sdk.Unknown(errors.New("connection reset after the request was sent"), sdk.CodeUnavailable)
	a := sdk.New("payment", "0.1.0")
	sdk.Action(a, "charge", func(context.Context, *sdk.Call, sdk.None) (sdk.None, error) { return sdk.None{}, err })
	reply, _ := a.Invoke(context.Background(), sdk.Request{
		Action: "charge", Purpose: sdk.PurposeDo, Input: json.RawMessage(`{}`), CompleteBy: time.Now().Add(time.Minute),
	}, sdk.InvokeOptions{})
	fmt.Println(reply.Outcome == sdk.OutcomeUnknown, reply.Code)
	// Output:
	// true unavailable
}
