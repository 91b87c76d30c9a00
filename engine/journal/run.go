package journal

import (
	"context"
	"errors"
	"fmt"

	"github.com/saga-engine/engine/dsl"
	"github.com/saga-engine/engine/engine/crypt"
	"github.com/saga-engine/engine/engine/internal/guard"
	"github.com/saga-engine/engine/engine/internal/wire"
	"github.com/saga-engine/engine/engine/machine"
	"github.com/saga-engine/engine/engine/machine/status"
	"github.com/saga-engine/engine/engine/store"
	"github.com/saga-engine/engine/engine/store/naming"
	"github.com/saga-engine/engine/engine/story"
)

// A Run is the state of a run, computed from its journal.
type Run struct {
	Head    store.Head
	Flow    *dsl.Workflow
	State   *machine.State
	Records []machine.Record // nil if the caller asked only for the state
	Facts   int              // number of facts of the run so far (package story)

	Stored int64 // size of the journal in bytes; 0 if LoadAt has computed the state

	// The next three fields describe the snapshot with which FoldShort began: the number of rows
	// that the snapshot covers, the size of these rows in bytes, and the size of the snapshot in
	// bytes. All are 0 if FoldShort has read all rows.
	Covered                     int32
	CoveredBytes, SnapshotBytes int64
	Refused                     *SnapshotError // why the snapshot is faulty; nil = FoldShort found no fault, or there is no snapshot

	moved int // number of moves to other definitions that the field Flow includes

	chain chain
}

// Rows returns the number of journal rows that the state includes. If FoldShort began with a
// snapshot, the rows that the snapshot covers count, too.
func (st *Run) Rows() int32 { return st.chain.rows }

// Workflow returns the id of the workflow that the run has in this state. A run that was moved has
// the workflow of another definition than at its start; the field Head keeps the first one.
func (st *Run) Workflow() store.WorkflowID {
	if moves := st.State.Run().Moves; len(moves) > 0 {
		return store.WorkflowID(moves[len(moves)-1].Workflow)
	}
	return st.Head.Workflow
}

// Next returns the link for the run's next row.
func (st *Run) Next() Link { return st.chain.Link }

// Load reads a run's journal and computes the run's state from it. It returns the run's workflow,
// its state, and its records in order (S22, S87). It works with and without running engines. The
// error contains ErrNotFound if the run does not exist. It is a *RunError if a row is wrong, or if
// this version cannot read a row. If the definition cannot be read, it is another error, for which
// Permanent returns true. The error contains a *KeyError if data of the run or its definition is
// sealed and the key is unknown.
func Load(ctx context.Context, st store.Journal, sealer crypt.Sealer, defs *Definitions, run status.RunID) (Run, error) {
	head, rows, err := store.LoadRun(ctx, st, run)
	if err != nil {
		return Run{}, fmt.Errorf("load run %s: %w", naming.RunName(run), err)
	}
	return Reader{st, sealer, defs}.Fold(ctx, store.Loaded{Head: head, Rows: rows}, nil, nil)
}

// A Reader computes states of runs from their journals.
type Reader struct {
	Store  store.Journal // not needed for Fold
	Sealer crypt.Sealer  // nil = runs with sealed values cannot be read
	Defs   *Definitions
}

// Fold computes the state of a run from its loaded rows. If the parameter `scratch` is not nil,
// Fold makes no records, which is much cheaper. Fold passes every event of the run, in order, to
// the function in the parameter `each`. This parameter may be nil.
func (rd Reader) Fold(ctx context.Context, l store.Loaded, scratch *Scratch, each func(machine.Event)) (Run, error) {
	if each == nil {
		each = func(machine.Event) {}
	}
	story := Run{Head: l.Head, State: machine.NewState()}
	if err := story.begin(ctx, rd.Defs); err != nil {
		return Run{}, err
	}
	if err := story.foldAll(ctx, rd, l.Rows, scratch, each); err != nil {
		return Run{}, err
	}
	return story, nil
}

// begin reads the data that is needed before the rows: the workflow of the run, and whether every
// row must have a tag.
func (st *Run) begin(ctx context.Context, defs *Definitions) (err error) {
	if st.Flow, err = defs.Workflow(ctx, st.Head.Workflow); err != nil {
		return err
	}
	st.chain.strict, err = defs.strict(ctx, st.Head.Run)
	return err
}

// foldAll verifies the remaining rows of the run, and applies them to the state.
func (st *Run) foldAll(ctx context.Context, rd Reader, rows []store.Row, scratch *Scratch, each func(machine.Event)) error {
	for _, row := range rows {
		if err := st.verify(rd.Sealer, row); err != nil {
			return err
		}
		st.Stored += int64(len(row.Data))
		if err := st.fold(ctx, rd, row, scratch, each); err != nil {
			return err
		}
	}
	return st.whole()
}

// whole checks that no row is missing at the end of the journal. It compares the journal rows with
// the Head of the run. The Head has the number of the journal row that made an engine the owner,
// and the status of the run after the last journal row. The store must have read the Head and the
// journal rows at the same moment. If a row is missing, whole returns a *RunError that contains a
// *HistoryError.
func (st *Run) whole() error {
	if st.Head.Fence >= st.chain.rows { // the row with the number Fence is missing
		return broken(st.Head, st.chain.rows, faultTail)
	}
	if got := st.State.Status(); got != st.Head.State {
		return broken(st.Head, st.chain.rows, historyFault(fmt.Sprintf(
			"is missing, or the run's own row was changed: that says %s, and the journal ends with %s", st.Head.State, got)))
	}
	return nil
}

// verify checks that a row continues the history of the previous rows. If not, it returns a
// *RunError that contains a *HistoryError.
func (st *Run) verify(sealer crypt.Sealer, row store.Row) error {
	seq := st.chain.rows
	if err := st.chain.follow(sealer, st.Head.Run, row); err != nil {
		return broken(st.Head, seq, err)
	}
	return nil
}

// fold applies the records of one row to the state, and counts their facts.
func (st *Run) fold(ctx context.Context, rd Reader, row store.Row, scratch *Scratch, each func(machine.Event)) error {
	var moving error
	note := func(c *machine.Change) {
		for _, m := range c.After().Moves[st.moved:] {
			if moving == nil {
				moving = st.move(ctx, rd.Defs, m.Workflow, m.StepOf)
			}
		}
		st.Facts += story.Count(st.Flow, c)
		each(c.Event())
	}
	if scratch == nil {
		if err := st.foldRecords(rd.Sealer, row, note); err != nil {
			return err
		}
		return moving
	}
	plain, err := openRow(rd.Sealer, st.Head.Run, row)
	if err == nil {
		err = guard.Do(func() error { return scratch.reader.Fold(st.State, plain, note) })
	}
	if err != nil {
		return st.blame(row, err)
	}
	return moving
}

// move replaces the workflow of the run with the workflow to which the run was moved. The
// parameters are the fields of a model.Move.
func (st *Run) move(ctx context.Context, defs *Definitions, workflow int32, stepOf []int32) error {
	next, err := defs.Workflow(ctx, store.WorkflowID(workflow))
	if err != nil {
		return err
	}
	st.Flow = next.Renumbered(st.Flow, stepOf)
	st.moved++
	return nil
}

// foldRecords does the work of fold. It also adds the records to st.Records.
func (st *Run) foldRecords(sealer crypt.Sealer, row store.Row, each func(*machine.Change)) error {
	records, err := DecodeRow(sealer, st.Head.Run, row)
	if err == nil {
		err = guard.Do(func() error {
			for _, rec := range records {
				c := st.State.Change(&rec)
				each(&c)
				c.Apply()
			}
			return nil
		})
	}
	st.Records = append(st.Records, records...)
	return st.blame(row, err)
}

// blame returns a *RunError that names the run and the row. If err is nil, it returns nil.
func (st *Run) blame(row store.Row, err error) error {
	if err == nil {
		return nil
	}
	return &RunError{Run: int64(st.Head.Run), Name: st.Head.Name, Err: fmt.Errorf("fold row %d: %w", row.Seq, err), Hint: HintFor(err)}
}

// HintFor returns a text that says what a person can do about an error; "" = no hint is known.
func HintFor(err error) string {
	var key *crypt.KeyError
	var agent interface{ Hint() string } // set if the error is about an agent of the run, such as a missing binary
	switch {
	case errors.As(err, &key):
		return key.Hint
	case Newer(err):
		return "it was written by a newer version: update this engine"
	case errors.As(err, &agent):
		return agent.Hint() + "; an engine that has this agent can go on with the run"
	}
	return ""
}

// Newer reports whether an error says that a newer version wrote the rows or messages.
func Newer(err error) bool { return errors.Is(err, wire.ErrFormat) }

// Permanent reports whether loading the run again after the error err would fail in the same way.
func Permanent(err error) bool {
	var run *RunError
	var bad *unreadable
	return errors.Is(err, store.ErrNotFound) || errors.As(err, &run) || errors.As(err, &bad)
}

// Lasting reports whether reading the store again after the error err would fail in the same way.
// Other errors may go away, such as a broken network, a server that is starting, or a full disk.
func Lasting(err error) bool {
	var schema *store.SchemaError
	var loss *store.LossError
	var key *crypt.KeyError
	return Permanent(err) || errors.Is(err, store.ErrDamaged) || errors.As(err, &schema) || errors.As(err, &loss) || errors.As(err, &key)
}
