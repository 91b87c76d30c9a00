// Package apply brings one run to its end in this process. In: a module.Request and flags. Out:
// the run's facts on a view, its outputs, and its exit code. The command makes an engine, which
// works on other open runs too unless --only is given. With --detach the command records the run
// and starts no engine.
//
// After a signal, the command stops in order: it starts nothing more, and the run is kept.
// After a second signal, it does not wait for calls in flight.
package apply
