package machine_test

import (
	"bytes"
	"errors"
	"fmt"
	"slices"
	"testing"

	"github.com/saga-engine/engine/dsl"
	"github.com/saga-engine/engine/engine/internal/model"
	"github.com/saga-engine/engine/engine/internal/wire"
	"github.com/saga-engine/engine/engine/machine"
)

// throughImage returns the state that a snapshot of s gives. Both states must know the same, and
// both must give the same snapshot.
func throughImage(s *machine.State) (*machine.State, error) {
	before := snapshot(s)
	data := wire.AppendState(nil, s.Clone())
	t, err := wire.DecodeState(slices.Clone(data))
	if err != nil {
		return nil, fmt.Errorf("promise 10: a snapshot cannot be read: %w", err)
	}
	if err := sameFold(s, t); err != nil {
		return nil, fmt.Errorf("from a snapshot: %w", err)
	}
	if !bytes.Equal(before, snapshot(s)) {
		return nil, errors.New("a snapshot changed its state")
	}
	if !bytes.Equal(data, wire.AppendState(nil, t.Clone())) {
		return nil, errors.New("promise 10: the snapshot of a state from a snapshot differs")
	}
	return t, nil
}

// decideFromImage checks that a state from a snapshot decides like the state itself.
func decideFromImage(wf *dsl.Workflow, s *machine.State, in machine.Input, want machine.Record) error {
	t, err := throughImage(s)
	if err != nil {
		return err
	}
	in.Scratch = nil
	got := machine.Decide(wf, t, in)
	a, err := wire.Encode([]machine.Record{want})
	if err != nil {
		return err
	}
	b, err := wire.Encode([]machine.Record{got})
	if err != nil {
		return err
	}
	if !bytes.Equal(a, b) || !slices.Equal(tellAll(want), tellAll(got)) {
		return fmt.Errorf("promise 10: Decide(%T) decides differently after a snapshot", in.Event)
	}
	return nil
}

// keep takes a snapshot of the state from time to time, for fold.
func (j *journal) keep(s *machine.State) {
	if len(j.rows)%7 != 3 {
		return
	}
	j.image, j.covered = wire.AppendState(nil, s.Clone()), len(j.rows)
}

// foldRest folds the rows that follow the last snapshot.
func (j *journal) foldRest(scratch *wire.Reader) (*machine.State, error) {
	s, err := wire.DecodeState(slices.Clone(j.image))
	if err != nil {
		return nil, err
	}
	for _, row := range j.rows[j.covered:] {
		if err := scratch.Fold(s, row, func(*machine.Change) {}); err != nil {
			return nil, err
		}
	}
	return s, nil
}

// A damaged snapshot is refused, or is another snapshot. It does not make the reader fail in any
// other way, and takes no more memory than its own size allows.
func TestDamagedImage(t *testing.T) {
	p := start(t, flow(do("a", readOnly, repeat(dsl.Repeat{Collect: everything}, 10)), do("b", after("a"))), "do a")
	p.okWith("a", `"a text that is worth sharing"`, "do a").okWith("a", `{"n":2}`, "do a")
	data := wire.AppendState(nil, p.s.Clone())
	for i := range data {
		if _, err := wire.DecodeState(data[:i]); err == nil {
			t.Fatalf("a snapshot that ends after %d of %d bytes was read", i, len(data))
		}
		for _, with := range []byte{0, 1, 0x7f, 0x80, 0xff, data[i] ^ 1} {
			bad := slices.Clone(data)
			bad[i] = with
			if s, err := wire.DecodeState(bad); err == nil && s.NodeCount() > model.MaxSteps+len(data) {
				t.Fatalf("byte %d: %d nodes", i, s.NodeCount())
			}
		}
	}
	bad := slices.Clone(data)
	bad[0]++
	if _, err := wire.DecodeState(bad); !errors.Is(err, wire.ErrFormat) {
		t.Fatalf("a snapshot of a newer format: %v", err)
	}
}

// everything is collect = self.output.
func everything(sc *dsl.Scope) (dsl.Value, error) { return sc.Self.Output, nil }
