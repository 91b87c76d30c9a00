package plugin

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"time"

	"github.com/saga-engine/engine/sdk"
)

// addHogs adds actions that take all there is. Each ends by itself somewhere, so that a
// test whose limits do not hold leaves the machine alive.
func addHogs(a *sdk.Agent) {
	sdk.Action(a, "memory", func(_ context.Context, _ *sdk.Call, in msIn) (sdk.None, error) {
		var held [][]byte
		for range in.Ms { // MiB
			block := make([]byte, 1<<20)
			for i := 0; i < len(block); i += 4096 {
				block[i] = 1
			}
			held = append(held, block)
		}
		<-time.After(time.Minute)
		return sdk.None{}, fmt.Errorf("%d MiB were not too much", len(held))
	})
	sdk.Action(a, "script", func(_ context.Context, _ *sdk.Call, in anyIn) (sdk.None, error) {
		cmd := exec.Command("/bin/sh", "-c", fmt.Sprint(in.Value))
		out, err := cmd.CombinedOutput()
		return sdk.None{}, fmt.Errorf("the script ended: %s, %w", out, err)
	})
	sdk.Action(a, "files", func(context.Context, *sdk.Call, sdk.None) (pidOut, error) {
		var open []*os.File
		defer func() {
			for _, f := range open {
				_ = f.Close()
			}
		}()
		for range 100_000 {
			f, err := os.Open(os.DevNull)
			if err != nil {
				return pidOut{len(open)}, nil
			}
			open = append(open, f)
		}
		return pidOut{len(open)}, nil
	})
	sdk.Action(a, "spin", func(ctx context.Context, _ *sdk.Call, _ sdk.None) (sdk.None, error) {
		for range 4 {
			go func() {
				for n := 0; ctx.Err() == nil; n++ { //nolint:staticcheck // it is meant to spin
				}
			}()
		}
		<-ctx.Done()
		return sdk.None{}, nil
	}, sdk.Cancellable())
}
