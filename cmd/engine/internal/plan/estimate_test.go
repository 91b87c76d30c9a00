package plan

import (
	"testing"
	"time"

	"github.com/saga-engine/engine/dsl"
)

func TestPause(t *testing.T) {
	exponential := dsl.Retry{Strategy: dsl.Exponential, InitialInterval: time.Second, Multiplier: 2, MaxInterval: 5 * time.Second}
	linear := dsl.Retry{Strategy: dsl.Linear, InitialInterval: time.Second, MaxInterval: 5 * time.Second}
	constant := dsl.Retry{Strategy: dsl.Constant, InitialInterval: time.Second, MaxInterval: 5 * time.Second}
	for _, c := range []struct {
		name string
		r    dsl.Retry
		want [4]time.Duration // after attempts 1, 2, 3 and 60
	}{
		{"exponential", exponential, [4]time.Duration{time.Second, 2 * time.Second, 4 * time.Second, 5 * time.Second}},
		{"linear", linear, [4]time.Duration{time.Second, 2 * time.Second, 3 * time.Second, 5 * time.Second}},
		{"constant", constant, [4]time.Duration{time.Second, time.Second, time.Second, time.Second}},
	} {
		t.Run(c.name, func(t *testing.T) {
			for i, n := range []int{1, 2, 3, 60} {
				if got := pause(c.r, n); got != c.want[i] {
					t.Errorf("pause after attempt %d = %s, want %s", n, got, c.want[i])
				}
			}
		})
	}
}
