//go:build !failpoints

package failpoint

// Enabled says whether this build can inject faults.
const Enabled = false

// Hit is called at each place. This build does nothing.
func Hit(string) {}

// HitEvent is Hit for a place where an event is handled. Each type of event has a fault and
// a counter of its own.
func HitEvent(string, any) {}

// HitPurpose is Hit for a place where a call is handled. Each purpose of a call has a fault
// and a counter of its own.
func HitPurpose(string, uint8) {}
