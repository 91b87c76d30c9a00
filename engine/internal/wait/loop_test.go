package wait

import (
	"context"
	"errors"
	"slices"
	"testing"
	"testing/synctest"
	"time"
)

// The pause doubles while there is no work, and begins anew after work or a hint.
func TestLoop(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithCancel(t.Context())
		hints := make(chan struct{}, 1)
		type answer struct {
			found int
			err   error
			hint  bool
		}
		answers := []answer{{found: Nothing}, {found: Nothing}, {found: Nothing}, {found: Nothing}, {found: Some}, {found: More}, {found: Nothing}, {err: errors.New("no")}, {found: Nothing, hint: true}, {found: Nothing}}
		var (
			pauses []time.Duration
			failed int
		)
		last := time.Now()
		Loop{Least: time.Second, Most: 5 * time.Second, Hints: hints, Failed: func(error) { failed++ }, Search: func(context.Context) (int, error) {
			pauses = append(pauses, time.Since(last))
			last = time.Now()
			if len(answers) == 0 {
				cancel()
				return Nothing, nil
			}
			a := answers[0]
			answers = answers[1:]
			if a.hint {
				Wake(hints)
			}
			return a.found, a.err
		}}.Run(ctx)
		s := time.Second
		if want := []time.Duration{0, 2 * s, 4 * s, 5 * s, 5 * s, s, 0, 2 * s, 4 * s, 0, 2 * s}; !slices.Equal(pauses, want) || failed != 1 {
			t.Errorf("pauses = %v, want %v; %d errors", pauses, want, failed)
		}
	})
}
