// Command inventory is the agent from the documentation, with a store in memory as its
// remote service.
package main

import (
	"context"
	"errors"
	"sync"

	"github.com/saga-engine/engine/sdk"
	"github.com/saga-engine/engine/sdk/plugin"
)

type ReserveIn struct {
	SKU string `agent:"sku" doc:"Stock keeping unit."`
	Qty int    `agent:"qty,optional" default:"1"`
}

type Reservation struct {
	ID string `agent:"reservation_id"`
}

type ReleaseIn struct { // the undo is declared with sdk.ByKey, so all its inputs must be optional
	ID string `agent:"reservation_id,optional"`
}

func main() {
	a := sdk.New("inventory", "0.1.0")
	sdk.Action(a, "reserve", func(ctx context.Context, c *sdk.Call, in ReserveIn) (Reservation, error) {
		id, err := stock.Reserve(ctx, c.IdempotencyKey, in.SKU, in.Qty)
		// The code out_of_stock is declared with sdk.Errors, so the engine does not repeat the
		// call.
		return Reservation{ID: id}, sdk.Code(err, errEmpty, "out_of_stock")
	}, sdk.Idempotent(), sdk.CompensatedBy("release"), sdk.Errors("out_of_stock"))
	sdk.Action(a, "release", func(ctx context.Context, c *sdk.Call, _ ReleaseIn) (sdk.None, error) {
		return sdk.None{}, stock.ReleaseByKey(ctx, c.ForwardKey) // the error is nil if nothing was reserved
	}, sdk.Idempotent(), sdk.ByKey())
	plugin.Serve(a)
}

var (
	errEmpty = errors.New("not enough in stock")
	stock    = &warehouse{reserved: map[string]bool{}, released: map[string]bool{}}
)

// warehouse is the remote service of the agent, in memory.
type warehouse struct {
	mu                 sync.Mutex
	reserved, released map[string]bool
}

func (w *warehouse) Reserve(_ context.Context, key, sku string, qty int) (string, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if sku == "none" || qty < 1 || w.released[key] {
		return "", errEmpty
	}
	w.reserved[key] = true
	return "res-" + key, nil
}

func (w *warehouse) ReleaseByKey(_ context.Context, key string) error {
	w.mu.Lock()
	defer w.mu.Unlock()
	delete(w.reserved, key)
	w.released[key] = true
	return nil
}
