package main

import (
	"os"
	"os/signal"
	"syscall"
	"time"
)

// leaveWithin is how long a process takes to leave after a second signal,
// whatever hangs in it: a state that does not answer, an agent that does not end,
// an evaluation that does not come back.
const leaveWithin = 3 * time.Second

// endOnSecondSignal makes a second signal end the process, whether or not the
// command gets to look at it. The command may still leave by itself within
// leaveWithin; a third signal ends the process on the spot. The returned function
// takes that back.
func (a *app) endOnSecondSignal(also ...os.Signal) (stop func()) {
	signals := make(chan os.Signal, 3)
	signal.Notify(signals, append(also, os.Interrupt, syscall.SIGTERM)...)
	over := make(chan struct{})
	go leave(signals, over, time.After, a.exit)
	return func() {
		signal.Stop(signals)
		close(over)
	}
}

// leave ends the process after the second signal, unless over is closed first.
func leave(signals <-chan os.Signal, over <-chan struct{}, after func(time.Duration) <-chan time.Time, exit func(int)) {
	var late <-chan time.Time
	for n := 1; ; n++ {
		select {
		case <-signals:
		case <-late:
			exit(exitOpen)
			return
		case <-over:
			return
		}
		switch n {
		case 1:
		case 2:
			late = after(leaveWithin)
		default:
			exit(exitOpen)
			return
		}
	}
}
