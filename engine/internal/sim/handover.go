package sim

import (
	"fmt"

	"github.com/saga-engine/engine/engine/machine"
	"github.com/saga-engine/engine/engine/machine/status"
	"github.com/saga-engine/engine/engine/story"
)

// untaken marks a signal that no wait and no group has taken yet.
const untaken = "untaken"

// handovers has the checks of early signals that runs hand over to groups.
type handovers struct{ *world }

// judge checks the early signals that runs have handed over to groups. The parent must have
// received each such signal. Only the run of one group may have got the signal. No wait step of the
// parent itself may have ended with the signal.
func (w handovers) judge() {
	holders := map[status.RunID]map[int32]string{}
	for _, s := range w.order {
		if len(s.records) == 0 {
			continue
		}
		ev, ok := s.records[0].Event().(machine.Started)
		if !ok || len(ev.Signals) == 0 {
			continue
		}
		p := w.stories[s.kin.parent]
		if p == nil {
			w.fault("%s started with signals, but its parent is missing", s.name)
			continue
		}
		if holders[p.id] == nil {
			holders[p.id] = w.waited(p)
		}
		for _, x := range ev.Signals {
			switch was := holders[p.id][x.Number]; was {
			case "":
				w.fault("%s started with signal %d, which its parent %s has not received", s.name, x.Number, p.name)
			case untaken:
				holders[p.id][x.Number] = s.name
			default:
				w.fault("%s started with signal %d of %s, which belongs to %s", s.name, x.Number, p.name, was)
			}
		}
	}
}

// waited returns a text for each signal that a run has received. The key is the number of the
// signal. If the signal has ended a wait step of the run itself, the text names this step. If not,
// the text is `untaken`.
func (w handovers) waited(s *runLog) map[int32]string {
	holders, ids, last := map[int32]string{}, map[string]bool{}, int32(0)
	for _, rec := range s.records {
		switch ev := rec.Event().(type) {
		case machine.Started:
			last += int32(len(ev.Signals))
		case machine.SignalReceived:
			if ev.ID == "" || !ids[ev.ID] {
				last++
			}
			ids[ev.ID] = true
		}
	}
	for number := range last {
		holders[number+1] = untaken
	}
	for i, n := range s.state.Nodes() {
		if n.Signal.Number != 0 {
			holders[n.Signal.Number] = fmt.Sprintf("the wait %s of the run itself", story.Node(s.state, s.flow, i).Name)
		}
	}
	return holders
}
