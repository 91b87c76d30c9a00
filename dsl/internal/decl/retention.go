package decl

import (
	"time"

	"github.com/saga-engine/engine/dsl/internal/syntax"
)

// leastRetention is the shortest time that runs are kept. A client that waits for the end of a run
// must have time to read the run.
const leastRetention = time.Minute

// readRetention reads the argument `retention` of a workflow into w.Retention. It is the same for all runs
// of a definition, so it must not refer to anything.
func readRetention(d *decoder, b *syntax.Block, w *Workflow) {
	e := b.Attr("retention")
	d.span(e, "retention", &w.Retention)
	if w.Retention > 0 && w.Retention < leastRetention {
		d.Errorf(e.Range, "Invalid value for retention", "A run is kept for at least 1m after its end, so that clients can read its result.")
	}
}
