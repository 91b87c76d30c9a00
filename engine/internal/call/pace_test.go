package call

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/saga-engine/engine/engine/machine"
)

// The pause after a checkpoint grows with its size, and doubles with every 16 MiB that
// the call has written.
func TestPaceOfCheckpoints(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := &progressSender{}
		send := func(bytes int) time.Duration {
			p.paceLocked(&Answer{Event: machine.AttemptProgress{Blob: make([]byte, bytes)}})
			return time.Until(p.paced)
		}
		if small := send(1); small != CheckpointPause {
			t.Errorf("the pause after a small checkpoint is %s, want %s", small, CheckpointPause)
		}
		const large = 1 << 20
		one := send(large)
		if want := large * time.Second / CheckpointRate; one < want || one > want+want/100 {
			t.Errorf("the pause after %d bytes is %s, want about %s", large, one, want)
		}
		for p.written < CheckpointsPerPace {
			send(large)
		}
		if two := send(large); two != 2*one {
			t.Errorf("after %d bytes the pause is %s, want twice %s", p.written, two, one)
		}
		for p.written < 2*CheckpointsPerPace {
			send(large)
		}
		if four := send(large); four != 4*one {
			t.Errorf("after %d bytes the pause is %s, want four times %s", p.written, four, one)
		}
	})
}
