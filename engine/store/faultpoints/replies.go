//go:build failpoints

package faultpoints

import "github.com/saga-engine/engine/engine/store/replies"

// Replies returns the outbox of the wrapped store; nil = the store keeps no replies. Tests inject
// faults at Commit, which writes the replies.
func (s *faultStore) Replies() replies.Outbox {
	box, _ := replies.Of(s.Full)
	return box
}
