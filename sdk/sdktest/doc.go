// Package sdktest checks that an agent keeps what it promises.
//
// An author lists cases, one per interesting input, and gets every rule that
// applies checked on each of them:
//
//	func TestAgent(t *testing.T) {
//		sdktest.Run(t, newAgent(), sdktest.Case{
//			Name: "reserve", Action: "reserve", Input: `{"sku":"lamp"}`,
//			Effects: warehouse.Reservations,
//		})
//	}
//
// A rule applies where the action claims the capability (sdk.Idempotent,
// sdk.CompensatedBy, sdk.Lookup, …) and where the case gives what the check
// needs. Each has a reason, which is shown when it is broken. Rules are checked
// one after the other, with new keys, about thirty calls to a case; what can be
// undone is undone again.
//
// Run tests an agent in the test's own process. RunTarget tests anything that
// can be called, above all a *plugin.Process, that is, a real binary behind the
// real handshake.
package sdktest
