package machine

import (
	"testing"
	"time"
)

// A fold that counts facts finds as many as are told, and comes to the same
// state.
func TestApplyCounted(t *testing.T) {
	wf := flow(do("a", each("x", "y", "z"), tries(3)), do("b", after("a")))
	told, counted := NewState(), NewState()
	events := []Event{
		Started{RunID: 1, Name: "counted"},
		AttemptOK{Attempt: AttemptID{Node: 2, Call: 1}, Output: js(`{"id":"1"}`)},
		AttemptFailed{Attempt: AttemptID{Node: 3, Call: 1}, Code: "unavailable", Message: "no"},
		TakenOver{By: 2, From: 1},
		PauseRequested{By: "me", Reason: "lunch", Ask: 1},
		PauseRequested{By: "me", Reason: "again", Ask: 2},
		TimePassed{},
		CancelRequested{By: "me", Reason: "enough", Ask: 3},
	}
	for i, e := range events {
		rec := Decide(wf, told, Input{At: noon.Add(time.Duration(i) * time.Second), Event: e})
		data, err := EncodeRecords([]Record{rec})
		if err != nil {
			t.Fatal(err)
		}
		decoded, err := DecodeRecords(data)
		if err != nil {
			t.Fatal(err)
		}
		want := len(decoded[0].Facts(wf, told))
		told.Apply(decoded[0])
		if got := counted.ApplyCounted(wf, decoded[0]); got != want {
			t.Errorf("%T: %d facts counted, %d told", e, got, want)
		}
		a, b := told.run, counted.run
		if a.State != b.State || a.Records != b.Records || a.Live != b.Live || len(told.nodes) != len(counted.nodes) {
			t.Errorf("%T: the states differ: %+v, %+v", e, a, b)
		}
	}
	if told.run.Records < 6 {
		t.Errorf("%d records: the events did not do what they are for", told.run.Records)
	}
}
