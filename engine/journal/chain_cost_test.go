//go:build !race

package journal

import (
	"testing"

	"github.com/saga-engine/engine/engine/crypt"
	"github.com/saga-engine/engine/engine/store"
)

// The tag or checksum of a row costs no memory beyond its own bytes.
func TestHistoryCostsNoMemory(t *testing.T) {
	for name, c := range map[string]struct {
		sealer crypt.Sealer
		bytes  int
	}{"with a key": {testSealer(t), crypt.TagSize}, "without a key": {nil, sumSize}} {
		data := append(make([]byte, 0, 256), make([]byte, 130)...)
		var l Link
		var out []byte
		bind := func() { data[0] = crypt.MarkPlain; out, l = l.bind(c.sealer, 7, 3, historyTime, data) }
		bind()
		if got := testing.AllocsPerRun(100, bind); got != 0 {
			t.Errorf("%s: %v allocations for a row", name, got)
		}
		if len(out) != len(data)+c.bytes {
			t.Errorf("%s: %d bytes more, want %d", name, len(out)-len(data), c.bytes)
		}
		ch := &chain{}
		row := store.Row{At: historyTime, Data: out}
		if got := testing.AllocsPerRun(100, func() {
			*ch = chain{}
			_ = ch.follow(c.sealer, 7, row) // the result does not matter here
		}); got != 0 {
			t.Errorf("%s: %v allocations to check a row", name, got)
		}
	}
}
