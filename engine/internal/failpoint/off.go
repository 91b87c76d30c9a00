//go:build !failpoints

package failpoint

// Enabled says whether this build has places where faults strike.
const Enabled = false

// Hit passes a place.
func Hit(string) {}

// HitEvent passes a place that has one side for each type of event.
func HitEvent(string, any) {}

// HitPurpose passes a place that has one side for each purpose of a call.
func HitPurpose(string, uint8) {}
