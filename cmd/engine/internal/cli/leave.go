package cli

import (
	"os"
	"os/signal"
	"syscall"
	"time"

	"github.com/saga-engine/engine/cmd/engine/internal/exit"
)

// leaveWithin is the longest time for which a process continues after a second signal, even
// if the state, an agent or an evaluation hangs.
const leaveWithin = 3 * time.Second

// EndOnSecondSignal makes a second signal end the process, even if the command hangs and does not
// read the signal. After the second signal, the command has the time leaveWithin to end in order.
// A third signal ends the process at once. After a call of the returned function `stop`, signals do
// not end the process in this way any more.
func (a *App) EndOnSecondSignal(also ...os.Signal) (stop func()) {
	signals := make(chan os.Signal, 3)
	signal.Notify(signals, append(also, os.Interrupt, syscall.SIGTERM)...)
	over := make(chan struct{})
	go leave(signals, over, time.After, a.Exit)
	return func() {
		signal.Stop(signals)
		close(over)
	}
}

// leave counts signals, and ends the process with a call of the function `end`. After the second
// signal, it waits for the duration leaveWithin before this call. After the third signal, it calls
// this function at once. The parameter `over` is a channel: when it is closed, leave returns and
// does not call this function.
func leave(signals <-chan os.Signal, over <-chan struct{}, after func(time.Duration) <-chan time.Time, end func(int)) {
	var late <-chan time.Time
	for n := 1; ; n++ {
		select {
		case <-signals:
		case <-late:
			end(exit.Open)
			return
		case <-over:
			return
		}
		switch n {
		case 1:
		case 2:
			late = after(leaveWithin)
		default:
			end(exit.Open)
			return
		}
	}
}
