// Package sdktest checks that an agent keeps its promises.
//
// An author lists cases, one for each interesting input. Every rule that applies is checked
// for each case:
//
//	func TestAgent(t *testing.T) {
//		sdktest.Run(t, newAgent(), sdktest.Case{
//			Name: "reserve", Action: "reserve", Input: `{"sku":"lamp"}`,
//			Effects: warehouse.Reservations,
//		})
//	}
//
// A rule applies if the action declares the capability (sdk.Idempotent, sdk.CompensatedBy,
// sdk.Lookup, …) and the case has what the check needs. Each rule has a reason, which is
// printed if the rule is broken. Rules are checked one after the other, each with new
// idempotency keys. A case needs about thirty calls. If the action has an undo, the
// effects of successful calls are undone again.
//
// Run tests an agent in the test's own process. RunTarget tests anything that can be called,
// in particular a *plugin.Process: a real binary with the real handshake.
package sdktest
