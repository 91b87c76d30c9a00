package machine_test

import (
	"bytes"
	"fmt"
	"reflect"
	"slices"
	"testing"

	"github.com/saga-engine/engine/dsl"
	"github.com/saga-engine/engine/engine/internal/model"
	"github.com/saga-engine/engine/engine/internal/wire"
	"github.com/saga-engine/engine/engine/machine"
	"github.com/saga-engine/engine/engine/machine/status"
	"github.com/saga-engine/engine/engine/story"
)

// snapshot is everything the state knows, byte for byte: the persisted fields
// with the values behind references, and what the indexes answer.
func snapshot(s *machine.State) []byte {
	all := model.Delta{At: 1, Run: &model.RunPatch{Mask: 1<<len(model.RunFields) - 1, To: *s.Run()}}
	var values []dsl.Value
	for _, o := range s.Run().Outputs {
		values = append(values, o.Value.V)
	}
	for i, n := range s.Nodes() {
		p := model.NodePatch{Node: i, Mask: 1<<len(model.NodeFields) - 1, To: n}
		for _, h := range model.NodeValues(n) {
			values = append(values, h.V)
		}
		for k := range n.Attempts {
			p.Attempts = append(p.Attempts, model.AttemptPatch{Mask: 1<<len(model.AttemptFields) - 1, To: n.Attempts[k]})
		}
		all.Nodes = append(all.Nodes, p)
	}
	records := []machine.Record{machine.NewRecord(machine.TimePassed{}, all)}
	for _, v := range values {
		records = append(records, machine.NewRecord(machine.AttemptOK{Output: v}, model.Delta{At: 1}))
	}
	b, err := wire.Encode(records)
	if err != nil {
		panic(err) // every event is known
	}
	b = fmt.Appendf(b, "%d %d %d %d", s.Run().Records, s.Run().Last, s.Checkpoints(), s.Weight())
	for _, x := range s.EarlySignals() {
		b = fmt.Appendf(b, "%d %s %s %s %s %s\n", x.Number, x.Name, x.Payload.JSON(), x.Fail, x.Reason, x.By)
	}
	due, timed := s.NextDue()
	return fmt.Appendf(b, "%v %v %+v", due, timed, s.Held())
}

// decideTwice decides and checks on the way that deciding changes nothing and
// is deterministic: promise 1.
func decideTwice(wf *dsl.Workflow, s *machine.State, in machine.Input) (machine.Record, error) {
	before := snapshot(s)
	rec := machine.Decide(wf, s, in)
	scratch := in.Scratch
	if scratch == nil {
		scratch = &machine.Scratch{}
	}
	in.Scratch = scratch
	machine.Decide(wf, s, in)
	again := machine.Decide(wf, s, in) // in memory that was used before
	if !bytes.Equal(before, snapshot(s)) {
		return rec, fmt.Errorf("promise 1: Decide(%T) changed its input", in.Event)
	}
	a, err := wire.Encode([]machine.Record{rec})
	if err != nil {
		return rec, err
	}
	b, err := wire.Encode([]machine.Record{again})
	if err != nil {
		return rec, err
	}
	if !bytes.Equal(a, b) || !slices.Equal(tellAll(rec), tellAll(again)) {
		return rec, fmt.Errorf("promise 1: Decide(%T) decided differently the second time", in.Event)
	}
	return rec, decideFromImage(wf, s, in, rec)
}

// tellAll writes a record's commands out, values included.
func tellAll(r machine.Record) []string {
	var told []string
	for _, c := range r.Commands() {
		if inv, ok := c.(machine.Invoke); ok {
			input := string(inv.Input.JSON())
			inv.Input = dsl.Value{}
			if inv.Checkpoint != nil {
				input += fmt.Sprintf(" %+v", *inv.Checkpoint)
				inv.Checkpoint = nil
			}
			for _, x := range inv.Signals {
				input += fmt.Sprintf(" %d %s %s %s %s %s", x.Number, x.Name, x.Payload.JSON(), x.Fail, x.Reason, x.By)
			}
			inv.Signals = nil
			told = append(told, fmt.Sprintf("%+v %s", inv, input))
			continue
		}
		told = append(told, fmt.Sprintf("%+v", c))
	}
	return told
}

// A journal is what a store would hold: bytes only.
type journal struct {
	rows [][]byte

	image   []byte // the last snapshot; nil = none
	covered int    // number of rows before the last snapshot
}

func (j *journal) append(rec machine.Record) error {
	row, err := wire.Encode([]machine.Record{rec})
	if err != nil {
		return err
	}
	back, err := wire.Decode(row)
	if err != nil {
		return err
	}
	if err := wire.Same(&rec, &back[0]); err != nil {
		return fmt.Errorf("promise 11: %w", err)
	}
	j.rows = append(j.rows, row)
	return nil
}

// fold reads the journal back, with and without making records of it, which must
// come to the same: promise 10.
func (j *journal) fold(wf *dsl.Workflow, scratch *wire.Reader) (*machine.State, error) {
	s, plain := machine.NewState(), machine.NewState()
	for _, row := range j.rows {
		facts := 0
		records, err := wire.Decode(slices.Clone(row))
		if err != nil {
			return nil, err
		}
		var told []machine.Event
		for _, r := range records {
			facts += len(story.Facts(wf, s, r))
			s.Apply(r)
		}
		counted, err := foldCounted(scratch, plain, wf, row, func(e machine.Event) { told = append(told, e) })
		if err != nil {
			return nil, err
		}
		if counted != facts {
			return nil, fmt.Errorf("%d facts were counted, %d told", counted, facts)
		}
		for k, r := range records {
			if k >= len(told) || !reflect.DeepEqual(told[k], r.Event()) {
				return nil, fmt.Errorf("event %d was told as %+v, want %+v", k, told, r.Event())
			}
		}
	}
	if err := sameFold(s, plain); err != nil {
		return nil, err
	}
	if j.image == nil {
		return s, nil
	}
	rest, err := j.foldRest(scratch)
	if err == nil {
		err = sameFold(s, rest)
	}
	return rest, err
}

func foldRow(s *machine.State, row []byte) error {
	records, err := wire.Decode(slices.Clone(row))
	if err != nil {
		return err
	}
	for _, r := range records {
		s.Apply(r)
	}
	return nil
}

// sameFold compares two folds of the same records: promise 10.
func sameFold(a, b *machine.State) error {
	if x, y := snapshot(a), snapshot(b); !bytes.Equal(x, y) {
		return fmt.Errorf("promise 10: two folds differ (%d and %d bytes)", len(x), len(y))
	}
	return nil
}

// foldCounted folds a row without making records, as an engine does, and returns how many
// facts it has.
func foldCounted(r *wire.Reader, s *machine.State, wf *dsl.Workflow, row []byte, each func(machine.Event)) (facts int, err error) {
	err = r.Fold(s, row, func(c *machine.Change) {
		facts += story.Count(wf, c)
		if each != nil {
			each(c.Event())
		}
	})
	return facts, err
}

// countFacts returns how many facts a record has, without telling them.
func countFacts(wf *dsl.Workflow, s *machine.State, rec machine.Record) int {
	c := s.Change(&rec)
	return story.Count(wf, &c)
}

// applyCounted applies a record and returns how many facts it has.
func applyCounted(s *machine.State, wf *dsl.Workflow, rec machine.Record) int {
	c := s.Change(&rec)
	facts := story.Count(wf, &c)
	c.Apply()
	return facts
}

// Nobody has changed what all nodes and runs share.
func checkShared(t *testing.T) {
	t.Helper()
	if !reflect.DeepEqual(model.NoMore, model.More{}) || model.NoHead != (model.Head{}) || !reflect.DeepEqual(model.NoRare, model.Rare{}) || !reflect.DeepEqual(model.Blank, model.Node{More: &model.NoMore}) {
		t.Fatal("what states share was changed")
	}
	for i := range model.Pristine {
		if !reflect.DeepEqual(model.Pristine[i], model.Node{Step: int32(i), State: status.StepPending, More: &model.NoMore}) {
			t.Fatalf("the step %d that states share was changed", i)
		}
	}
}
