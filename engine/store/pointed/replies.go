//go:build failpoints

package pointed

import "github.com/saga-engine/engine/engine/store/replies"

// Replies returns the outbox of the wrapped store; nil = the store keeps no replies. Faults strike at
// Commit, which writes the replies.
func (s *pointed) Replies() replies.Outbox {
	box, _ := replies.Of(s.Full)
	return box
}
