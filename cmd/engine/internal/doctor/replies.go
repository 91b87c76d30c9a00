package doctor

import (
	"context"
	"fmt"
	"strconv"
	"time"

	"github.com/saga-engine/engine/cmd/engine/render"
	"github.com/saga-engine/engine/engine/store/health"
	"github.com/saga-engine/engine/engine/store/replies"
)

// staleReply is how long a reply may wait for its sink before the doctor warns.
const staleReply = 10 * time.Minute

// checkReplies reports how many replies of runs wait, and warns about each sink for which a reply
// waits too long.
func checkReplies(ctx context.Context, c *checkup) error {
	box, ok := replies.Of(c.s.Store)
	if !ok {
		return nil
	}
	lag, err := box.Lag(ctx)
	if err != nil {
		return c.s.Wrap("count the replies that wait", err)
	}
	waiting, late := 0, false
	for _, l := range lag {
		waiting += l.Waiting
		if age := c.a.Now().Sub(l.Oldest); age > staleReply {
			late = true
			lost := ""
			if age > replies.KeepFor/2 {
				lost = fmt.Sprintf(" After %s a reply no longer keeps its run, and retention removes both.", replies.KeepFor)
			}
			c.say("replies", health.Warning, "Look whether its consumer runs, or whether its webhook or agent answers; `engine show RUN` prints the last error.",
				"%s for %s, the oldest since %s.%s", waitingReplies(l.Waiting), render.Clean(l.Sink), age.Round(time.Second), lost)
		}
	}
	switch {
	case late:
	case waiting == 0:
		c.say("replies", health.OK, "", "Every reply of a run was delivered.")
	default:
		c.say("replies", health.OK, "", "%s, and none for long.", waitingReplies(waiting))
	}
	return nil
}

// waitingReplies says how many replies wait.
func waitingReplies(n int) string {
	if n == 1 {
		return "1 reply waits"
	}
	return strconv.Itoa(n) + " replies wait"
}
