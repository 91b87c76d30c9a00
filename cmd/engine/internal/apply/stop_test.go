package apply

import (
	"context"
	"strings"
	"testing"

	"github.com/saga-engine/engine/cmd/engine/internal/follow"
	"github.com/saga-engine/engine/cmd/engine/render"
)

// noteView is a view that passes its notes to a function.
type noteView struct {
	render.View
	note func(string)
}

func (v noteView) Note(text string) { v.note(text) }

// TestInterruptStopsFirst: when the message appears, the node has been stopped already. So
// the message is true: no call that ends after it is followed by another one.
func TestInterruptStopsFirst(t *testing.T) {
	ctx, stop := context.WithCancel(t.Context())
	defer stop()
	var notes []string
	view := noteView{note: func(text string) {
		notes = append(notes, text)
		if ctx.Err() == nil {
			t.Errorf("the node is not stopped yet when this is written: %s", text)
		}
	}}
	e := &engineRun{stop: stop}
	interrupt(&work{Feed: follow.NewFeed(view, 0)}, e)
	if !e.stopped || len(notes) != 1 || !strings.HasPrefix(notes[0], "Stopping: nothing more is started") {
		t.Errorf("stopped=%t notes=%q, want one note", e.stopped, notes)
	}
}
