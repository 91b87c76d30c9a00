// Package apply brings one run to its end in this process. In: a module.Request and flags.
// Out: the run's facts on a view, its outputs, and its exit code. It makes an engine, which
// works on other open runs too unless --only is given. With --detach it records the run and
// starts no engine.
//
// A signal stops it in order: nothing more is started, and the run is kept. A second signal
// ends the process at once.
package apply
