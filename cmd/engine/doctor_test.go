package main

import (
	"strings"
	"testing"
	"time"

	"github.com/saga-engine/engine/engine/store/memory"
)

// S45 (T7): whether an engine renews its lease is judged by the store's clock,
// however far off this machine's is.
func TestDoctorGoesByTheStoresClock(t *testing.T) {
	for name, skew := range map[string]time.Duration{"here it is an hour later": time.Hour, "here it is an hour earlier": -time.Hour, "the same": 0} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			store := memory.New(memory.Options{Now: func() time.Time { return time.Now().Add(-skew) }})
			if _, err := store.Join(t.Context(), "frozen", 2*leaseLook, 1); err != nil {
				t.Fatal(err)
			}
			if _, err := store.Join(t.Context(), "fine", time.Hour, 1); err != nil {
				t.Fatal(err)
			}
			live, err := store.Live(t.Context())
			if err != nil {
				t.Fatal(err)
			}
			c := &checkup{a: &app{}, s: &session{store: store}, live: live}
			if err := c.leases(t.Context()); err != nil {
				t.Fatal(err)
			}
			if len(c.found) != 1 || c.found[0].Name != "lease" || !strings.Contains(c.found[0].Message, "1 at frozen does not renew its lease") {
				t.Errorf("found %+v, want the frozen engine only", c.found)
			}
		})
	}
}
