package journal

import (
	"context"
	"fmt"

	"github.com/saga-engine/engine/engine/machine"
	"github.com/saga-engine/engine/engine/machine/status"
	"github.com/saga-engine/engine/engine/store"
	"github.com/saga-engine/engine/engine/store/naming"
)

// LoadAt does the same as Load, but computes the state that the run had after one of its rows. The
// parameter `seq` is the number of this row. The result has no records, and its field Stored is 0.
// The field Head has the present values, not those after the row.
func (rd Reader) LoadAt(ctx context.Context, run status.RunID, seq int32) (Run, error) {
	head, rows, err := store.LoadRun(ctx, rd.Store, run)
	if err != nil {
		return Run{}, fmt.Errorf("load run %s: %w", naming.RunName(run), err)
	}
	story := Run{Head: head, State: machine.NewState()}
	if story.Flow, err = rd.Defs.Workflow(ctx, head.Workflow); err != nil {
		return Run{}, err
	}
	if story.chain.strict, err = rd.Defs.strict(ctx, run); err != nil {
		return Run{}, err
	}
	scratch := &Scratch{}
	for _, row := range rows {
		if row.Seq > seq {
			break
		}
		if err := story.verify(rd.Sealer, row); err != nil {
			return Run{}, err
		}
		if err := story.fold(ctx, rd, row, scratch, func(machine.Event) {}); err != nil {
			return Run{}, err
		}
	}
	if story.chain.rows <= seq {
		return Run{}, broken(head, story.chain.rows, faultTail)
	}
	return story, nil
}
