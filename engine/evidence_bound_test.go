package engine

import "testing"

// S28: evidence of late answers waits for the store in bounded memory: a number
// of answers and a number of bytes. Answers beyond it are counted.
func TestEvidenceIsBounded(t *testing.T) {
	for name, tc := range map[string]struct{ size, want int }{
		"many small answers": {1, maxLateWaiting},
		"few large answers":  {maxLateBytes / 4, 4},
	} {
		t.Run(name, func(t *testing.T) {
			ev := &evidence{idle: make(chan struct{})} // as if its goroutine waited for the store
			const all = maxLateWaiting + 50
			for range all {
				ev.add(lateAnswer{size: tc.size})
			}
			if len(ev.waiting) != tc.want || ev.dropped != all-tc.want {
				t.Errorf("%d answers wait and %d were dropped, want %d and %d", len(ev.waiting), ev.dropped, tc.want, all-tc.want)
			}
		})
	}
}
