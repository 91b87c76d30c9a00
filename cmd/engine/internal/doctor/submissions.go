package doctor

import (
	"context"
	"fmt"
	"strings"
	"time"

	"github.com/saga-engine/engine/cmd/engine/internal/starts"
	"github.com/saga-engine/engine/cmd/engine/internal/words"
	"github.com/saga-engine/engine/cmd/engine/render"
	"github.com/saga-engine/engine/engine/store/health"
	"github.com/saga-engine/engine/engine/store/intake"
)

// staleStart is how long a submission or an event may wait for an engine before the doctor warns.
const staleStart = 5 * time.Minute

// checkStarts warns about submissions and events that wait too long (S65). An engine may be unable
// to decide on them, for example because it lacks the encryption key.
func checkStarts(ctx context.Context, c *checkup) error {
	list, err := starts.Oldest(ctx, c.s.Store)
	if err != nil {
		return c.s.Wrap("look for submissions and events that wait", err)
	}
	for _, x := range list {
		if age := c.a.Now().Sub(x.At); age >= staleStart {
			c.say(x.Kind+"s", health.Warning, "Look at the logs of the engines: they say why they cannot start its run. If none is alive, start one with `engine serve`.",
				"The oldest %s that waits for an engine is %s, since %s.", x.Kind, render.Clean(x.Name), render.Span(age.Truncate(time.Second)))
		}
	}
	return nil
}

// checkSubmissions warns about submissions that engines refused. The programs that submitted them
// wait for runs that do not exist.
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
