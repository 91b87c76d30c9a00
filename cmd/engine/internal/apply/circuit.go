package apply

import (
	"time"

	"github.com/saga-engine/engine/cmd/engine/render"
	"github.com/saga-engine/engine/engine/agents"
)

// circuitObserver sends each change of a circuit to the channel in the field `to`. The goroutine
// that calls the view receives the changes from this channel.
type circuitObserver struct{ to chan<- render.Circuit }

var _ agents.Observer = circuitObserver{}

// CircuitChanged sends the change to the channel o.to. It drops the change if the channel is
// full.
func (o circuitObserver) CircuitChanged(c agents.CircuitChange) {
	select {
	case o.to <- render.Circuit{Agent: c.Agent, State: string(c.To), Failures: c.Failures, Until: c.Until, At: time.Now()}:
	default:
	}
}

// ProcessStarted does nothing.
func (circuitObserver) ProcessStarted(agents.ProcessInfo) {}

// ProcessEnded does nothing.
func (circuitObserver) ProcessEnded(agents.ProcessInfo, error) {}
