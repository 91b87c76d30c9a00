// Package sdktest tests whether an agent really has the properties that it declares.
//
// An author lists cases, one for each interesting input. The package checks every rule that
// applies to a case:
//
//	func TestAgent(t *testing.T) {
//		sdktest.Run(t, newAgent(), sdktest.Case{
//			Name: "reserve", Action: "reserve", Input: `{"sku":"lamp"}`,
//			Effects: warehouse.Reservations,
//		})
//	}
//
// A rule applies if the action declares the property (sdk.Idempotent, sdk.CompensatedBy,
// sdk.Lookup, …) and the case has the fields that the check needs. Each rule has a reason. The
// package prints the reason if the agent breaks the rule. The package checks one rule after the
// other, each with new idempotency keys. A case needs approximately thirty calls. If the action has
// an undo, the package undoes the effects of successful calls.
//
// NewCall is for a unit test that calls the function of an action directly.
//
// Run tests an agent in the test's own process. RunTarget tests every Target, in particular a
// *plugin.Process: a real binary with the real handshake.
package sdktest
