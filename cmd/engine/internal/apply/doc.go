// Package apply brings one run to its end in this process. In: a module.Request and flags. Out: a
// report of what happens to the run, its outputs, and its exit code. The command makes an engine.
// This engine works on other open runs, too, unless --only is given. With --detach the command
// records the run and starts no engine.
//
// After Ctrl-C or another signal of the operating system, the command starts nothing more,
// waits for the calls in flight and stops. The store keeps the run. After a second such
// signal, the command does not wait for calls in flight.
package apply
