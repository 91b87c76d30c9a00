package machine_test

import (
	"testing"
	"time"

	"github.com/saga-engine/engine/engine/internal/wire"
	"github.com/saga-engine/engine/engine/machine"
	"github.com/saga-engine/engine/engine/story"
)

// A fold that counts facts finds as many as are told, and comes to the same
// state.
func TestFactsAreCountedWhileApplying(t *testing.T) {
	wf := flow(do("a", each("x", "y", "z"), tries(3)), do("b", after("a")))
	told, counted := machine.NewState(), machine.NewState()
	events := []machine.Event{
		machine.Started{RunID: 1, Name: "counted"},
		machine.AttemptOK{Attempt: machine.AttemptID{Node: 2, Call: 1}, Output: js(`{"id":"1"}`)},
		machine.AttemptFailed{Attempt: machine.AttemptID{Node: 3, Call: 1}, Code: "unavailable", Message: "no"},
		machine.TakenOver{By: 2, From: 1},
		machine.PauseRequested{By: "me", Reason: "lunch", Ask: 1},
		machine.PauseRequested{By: "me", Reason: "again", Ask: 2},
		machine.TimePassed{},
		machine.CancelRequested{By: "me", Reason: "enough", Ask: 3},
	}
	for i, e := range events {
		rec := machine.Decide(wf, told, machine.Input{At: noon.Add(time.Duration(i) * time.Second), Event: e})
		data, err := wire.Encode([]machine.Record{rec})
		if err != nil {
			t.Fatal(err)
		}
		decoded, err := wire.Decode(data)
		if err != nil {
			t.Fatal(err)
		}
		want := len(story.Facts(wf, told, decoded[0]))
		told.Apply(decoded[0])
		if got := applyCounted(counted, wf, decoded[0]); got != want {
			t.Errorf("%T: %d facts counted, %d told", e, got, want)
		}
		a, b := told.Run(), counted.Run()
		if a.State != b.State || a.Records != b.Records || a.Live != b.Live || len(told.Nodes()) != len(counted.Nodes()) {
			t.Errorf("%T: the states differ: %+v, %+v", e, a, b)
		}
	}
	if told.Run().Records < 6 {
		t.Errorf("%d records: the events did not do what they are for", told.Run().Records)
	}
}
