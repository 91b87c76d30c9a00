// Package sdk is what the author of an agent writes against.
//
// An agent is a process that encapsulates one remote service or resource. It
// offers actions; each is an ordinary typed function:
//
//	a := sdk.New("inventory", "0.1.0")
//	sdk.Action(a, "reserve", reserve, sdk.Idempotent(), sdk.CompensatedBy("release"))
//	sdk.Action(a, "release", release, sdk.Idempotent(), sdk.ByKey())
//	plugin.Serve(a)
//
// The fields of the input and output structs carry a tag, from which the
// schema that workflows are checked against is made:
//
//	type ReserveIn struct {
//		SKU  string        `agent:"sku" doc:"Stock keeping unit."`
//		Qty  int           `agent:"qty,optional" default:"1"`
//		Mode string        `agent:"mode,optional" default:"soft" enum:"soft|hard"`
//		Hold time.Duration `agent:"hold,optional" default:"15m"`
//	}
//
// Structs, maps with string keys, slices, pointers (which may be null),
// time.Duration and everything that reads and writes itself as text are
// supported; json.Number, json.RawMessage and any keep numbers exact.
//
// # What a call may end with
//
// Exactly three things, and everything not said is the third.
//
//   - A result: the function returned no error.
//   - A definite failure: the function returned a *Failure (often made by
//     Code). The author vouches that nothing was done. The code decides what
//     the workflow does; declare it with Errors or RetryableErrors.
//   - Unknown: any other error, a panic, a reply that does not fit the schema,
//     or Unknown(err, code). The engine finds out by Lookup, by repeating an
//     Idempotent action with the same key, or by undoing it.
//
// # Rules that keep money safe
//
// Call.IdempotencyKey is the same for every attempt of a step, on every engine
// and after every restart. Hand it to the remote service, so that a repeated
// call has one effect. Past Call.CompleteBy another instance may already be at
// work on the same step: the context is cancelled then and nothing the
// function returns is sent any more.
//
// Package sdktest checks that an agent keeps these rules; package plugin turns
// it into a process. This package imports the standard library only.
package sdk
