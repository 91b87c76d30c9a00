package link

import (
	"testing"
	"time"

	"github.com/saga-engine/engine/dsl/internal/noun"
)

// TestPauses: the longest pause after each attempt.
func TestPauses(t *testing.T) {
	r := noun.Retry{InitialInterval: time.Second, Multiplier: 2, MaxInterval: 5 * time.Second}
	for strategy, want := range map[noun.Strategy][]time.Duration{
		noun.Exponential: {1, 2, 4, 5, 5}, noun.Linear: {1, 2, 3, 4, 5}, noun.Constant: {1, 1, 1, 1, 1},
	} {
		r.Strategy = strategy
		for k, w := range want {
			if got := longestPause(&r, k+1); got != w*time.Second {
				t.Errorf("strategy %d, after attempt %d: %v", strategy, k+1, got)
			}
		}
	}
}
