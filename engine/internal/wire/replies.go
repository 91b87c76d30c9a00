package wire

import "github.com/saga-engine/engine/engine/internal/model"

// putReply writes where the replies of a run go; nil = the run has no replies.
func putReply(e *encoder, to *model.ReplyTo) {
	if to == nil {
		to = &model.ReplyTo{}
	}
	e.string(to.Sink)
	e.string(to.Correlation)
}

// getReply reads where the replies of a run go.
func getReply(d *decoder) *model.ReplyTo {
	return &model.ReplyTo{Sink: d.string(), Correlation: d.string()}
}
