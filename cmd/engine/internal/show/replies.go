package show

import (
	"fmt"

	"github.com/saga-engine/engine/cmd/engine/internal/history"
	"github.com/saga-engine/engine/engine/store/replies"
)

// replyLine returns a line that says where the replies of a run go, and how many of them wait; "" =
// the submission named no sink.
func replyLine(r *history.Run) string {
	to := r.State.Run().Reply
	if to == nil {
		return ""
	}
	var first *replies.Reply
	waiting := 0
	for i := range r.Replies {
		if !r.Replies[i].Done {
			if waiting++; first == nil {
				first = &r.Replies[i]
			}
		}
	}
	text := fmt.Sprintf("%s, %d delivered", to.Sink, len(r.Replies)-waiting)
	if waiting > 0 {
		text += fmt.Sprintf(", %d waiting", waiting)
	}
	if first != nil && first.Why != "" {
		text += fmt.Sprintf(" (last try: %s)", first.Why)
	}
	return text
}

// repliesJSON returns where the replies of a run go, and the replies, for --json.
func repliesJSON(r *history.Run) map[string]any {
	out := map[string]any{"to": "", "correlation": ""}
	if to := r.State.Run().Reply; to != nil {
		out["to"], out["correlation"] = to.Sink, to.Correlation
	}
	list := []map[string]any{}
	for _, x := range r.Replies {
		list = append(list, map[string]any{"seq": x.N, "status": x.State, "at": x.At, "delivered": x.Done, "tries": x.Tries, "why": x.Why})
	}
	out["messages"] = list
	return out
}
