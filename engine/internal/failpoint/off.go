//go:build !failpoints

package failpoint

// Enabled says whether this build can inject faults.
const Enabled = false

// Hit is called at each point where a fault can be injected. This build does nothing.
func Hit(string) {}

// HitEvent is called at each point where an event is handled. This build does nothing.
func HitEvent(string, any) {}

// HitPurpose is called at each point where a call is handled. This build does nothing.
func HitPurpose(string, uint8) {}
