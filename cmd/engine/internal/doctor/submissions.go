package doctor

import (
	"context"
	"fmt"
	"strings"
	"time"

	"github.com/saga-engine/engine/cmd/engine/internal/words"
	"github.com/saga-engine/engine/cmd/engine/render"
	"github.com/saga-engine/engine/engine/store/health"
	"github.com/saga-engine/engine/engine/store/intake"
)

// checkSubmissions warns about submissions that engines refused. The programs that submitted them wait
// for runs that do not exist.
func checkSubmissions(ctx context.Context, c *checkup) error {
	role, ok := intake.Of(c.s.Store)
	if !ok {
		return nil
	}
	r, err := role.RefusedSubmissions(ctx)
	if err != nil {
		return c.s.Wrap("count the submissions that were refused", err)
	}
	if r.Count == 0 {
		c.say("submissions", health.OK, "", "No submission is refused.")
		return nil
	}
	count := "1 submission is refused, since"
	if r.Count > 1 {
		count = fmt.Sprintf("%d submissions are refused, the oldest since", r.Count)
	}
	c.say("submissions", health.Warning,
		fmt.Sprintf("`engine show %s` says more. `SELECT * FROM engine.submissions WHERE status = 'refused'` lists them all.", words.Quote(render.Clean(r.Oldest.Run))),
		"%s %s: run %s of workflow %s: %s.", count, c.a.Now().Sub(r.Oldest.RefusedAt).Round(time.Second), render.Clean(r.Oldest.Run), render.Clean(r.Oldest.Workflow), strings.TrimSuffix(render.Clean(r.Oldest.Refused), "."))
	return nil
}
