// Package sdk is the package with which an author writes an agent.
//
// An agent is a process that encapsulates one remote service or resource. It offers actions.
// Each action is an ordinary typed function:
//
//	a := sdk.New("inventory", "0.1.0")
//	sdk.Action(a, "reserve", reserve, sdk.Idempotent(), sdk.CompensatedBy("release"))
//	sdk.Action(a, "release", release, sdk.Idempotent(), sdk.ByKey())
//	plugin.Serve(a)
//
// The fields of the input and output structs have tags. The tags define the schema against
// which workflows are checked:
//
//	type ReserveIn struct {
//		SKU  string        `agent:"sku" doc:"Stock keeping unit."`
//		Qty  int           `agent:"qty,optional" default:"1"`
//		Mode string        `agent:"mode,optional" default:"soft" enum:"soft|hard"`
//		Hold time.Duration `agent:"hold,optional" default:"15m"`
//	}
//
// Supported types are strings, booleans, integers, floats, structs, maps with string keys, slices
// (but not of bytes), pointers (which may be null), time.Duration, and every type that implements
// encoding.TextMarshaler and TextUnmarshaler. Fields of type json.Number, json.RawMessage or `any`
// keep numbers exact.
//
// # How a call ends
//
// A call ends in exactly one of three ways. If the end is neither clearly a result nor clearly
// a definite failure, the outcome is unknown.
//
//   - A result: the function returned no error.
//   - A definite failure: the function returned a *Failure, often made by Code. The author
//     guarantees that nothing was done. What the workflow does depends on the error code of
//     the *Failure; declare this code with Errors or RetryableErrors.
//   - Unknown: any other error, a panic, a reply that does not fit the schema, or
//     Unknown(err, code). The engine then finds out the outcome: by Lookup, by repeating an
//     Idempotent action with the same key, or by undoing the action.
//
// # Rules that keep money safe
//
// Call.IdempotencyKey is the same for every attempt of a step, on every engine and after every
// restart. The comment of Request.IdempotencyKey names the two exceptions. Pass the key to the
// remote service, so that a repeated call has one effect. After Call.CompleteBy another attempt of
// the same step may already be running. So the context ends at that time, and the result of the
// function is not sent any more.
//
// Package sdktest checks that an agent keeps these rules. Package plugin runs the agent as a
// process. Package sdk needs no other module: it imports only the standard library and packages of
// its own module.
package sdk
