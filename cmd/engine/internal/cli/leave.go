package cli

import (
	"os"
	"os/signal"
	"syscall"
	"time"

	"github.com/saga-engine/engine/cmd/engine/internal/exit"
)

// leaveWithin is how long a process may continue after a second Ctrl-C, if the state, an agent
// or an evaluation hangs.
const leaveWithin = 3 * time.Second

// EndOnSecondSignal makes the process end after a second signal of the operating system, such
// as Ctrl-C, even if the command hangs. After the second signal, the command has the time
// leaveWithin to end normally. A third signal ends the process at once. A call of the returned
// function `stop` switches this off.
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

// leave counts the signals of the operating system. After the third signal, it calls the function
// `end`, which ends the process. It also calls `end` when the time leaveWithin has passed since the
// second signal. If the channel `over` is closed first, leave returns and does not call `end`.
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
