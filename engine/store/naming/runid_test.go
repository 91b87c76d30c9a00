package naming

import (
	"testing"
	"time"

	"github.com/saga-engine/engine/engine/machine/status"
)

// Run ids rise, however many are made in one moment, and also when the store's
// clock falls back.
func TestRunIDsRise(t *testing.T) {
	var ids RunIDSource
	now, last := time.Date(2026, 3, 14, 10, 0, 0, 0, time.UTC), status.RunID(0)
	for i := range 3000 {
		if i == 2000 {
			now = now.Add(-time.Hour)
		}
		id, err := ids.Next(now)
		if err != nil {
			t.Fatal(err)
		}
		if id <= last {
			t.Fatalf("id %d follows %d", id, last)
		}
		last = id
	}
}
