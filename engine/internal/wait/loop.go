package wait

import (
	"context"
	"time"
)

// These constants say what one search of a Loop has found.
const (
	Nothing = iota
	Some    // there was work, and more may come soon
	More    // there is more work now
)

// A Loop searches for work again and again. While it finds none, the pause between two searches
// doubles each time. All fields except Hints and NoWork are required.
type Loop struct {
	Least, Most time.Duration   // shortest and longest pause between two searches
	Hints       <-chan struct{} // a value means that there may be work, and ends the pause; nil = no hints
	// NoWork reports whether the store has said a short time ago that there is no work. If it
	// returns true at the end of a pause, the Loop pauses again instead of searching. If NoWork is
	// nil, each pause ends with a search.
	NoWork func() bool
	// Search searches once and works on what it finds. It returns Nothing, Some or More.
	Search func(ctx context.Context) (found int, err error)
	// Failed is called with each error of Search. After an error the pause doubles, too.
	Failed func(err error)
}

// Run searches until ctx ends.
func (l Loop) Run(ctx context.Context) {
	for pause := l.Least; ; {
		found, err := l.Search(ctx)
		switch {
		case ctx.Err() != nil:
			return
		case err != nil:
			l.Failed(err)
			pause = min(2*pause, l.Most)
		case found == More:
			pause = l.Least
			continue
		case found == Some:
			pause = l.Least
		default:
			pause = min(2*pause, l.Most)
		}
		switch hinted, err := Idle(ctx, pause, l.Hints, l.NoWork); {
		case err != nil:
			return
		case hinted:
			pause = l.Least
		}
	}
}
