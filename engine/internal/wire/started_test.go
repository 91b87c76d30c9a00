package wire

import (
	"reflect"
	"testing"
	"time"

	"github.com/saga-engine/engine/engine/machine"
	"github.com/saga-engine/engine/engine/machine/line"
)

// The start of a run comes back as it was: of a run, a child run, a run with a priority or a limit,
// of a child run with one, and of runs that must start by a time.
// a child run with one, and a run with replies.
func TestStartedComesBack(t *testing.T) {
	plain := machine.Started{RunID: 7, Name: "n", Key: "k", Trigger: "manual", StartedBy: "ann"}
	child := plain
	child.Parent, child.ParentName, child.ParentStep, child.Until, child.Void = 3, "p", "s[1]", time.Date(2026, 11, 25, 0, 0, 0, 0, time.UTC), true
	inLine := plain
	inLine.Line, inLine.Waits = line.Line{Lift: 20, Key: "eu", Limit: 3}, true
	both := child
	both.Line, both.Waits = inLine.Line, true
	by, all := plain, both
	by.StartBy = time.Date(2026, 11, 26, 0, 0, 0, 0, time.UTC)
	all.StartBy = by.StartBy
	replying, together := plain, inLine
	replying.ReplyTo, replying.Correlation = "table:orders", "o-7"
	together.ReplyTo, together.StartBy = "webhook:orders", by.StartBy
	for name, ev := range map[string]machine.Started{"plain": plain, "child": child, "in line": inLine, "child in line": both, "by": by, "all": all, "replying": replying, "replying in line": together} {
		data, err := EncodeEvent(ev)
		if err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		got, err := DecodeEvent(data)
		if err != nil || !reflect.DeepEqual(got, machine.Event(ev)) {
			t.Errorf("%s: %+v, %v, want %+v", name, got, err, ev)
		}
	}
}
