package sdk

import (
	"context"
	"log/slog"
	"testing"
	"time"
)

// S28: complete-by has passed when either clock says so: the wall clock, also on
// a machine that slept and whose timers noticed nothing, or the time that was
// left when the call was sent, also where the two machines' clocks differ.
func TestOverByEitherClock(t *testing.T) {
	now := time.Now()
	for name, test := range map[string]struct {
		start, completeBy time.Time
		want              bool
	}{
		"neither":        {now, now.Add(time.Hour), false},
		"the wall clock": {now, now.Add(-time.Second), true},
		"the time left":  {now.Add(-2 * time.Minute), now.Add(time.Hour), true},
		"at complete-by": {now, now, true},
	} {
		r := Request{CompleteBy: test.completeBy}
		if got := r.over(test.start, time.Minute, now); got != test.want {
			t.Errorf("%s: over=%t, want %t", name, got, test.want)
		}
	}
}

// S28: an action is not called when complete-by has passed by either clock, and
// what it says after that is not answered.
func TestRunPastCompleteBy(t *testing.T) {
	begun := 0
	var late chan struct{}
	a := New("a", "1.0.0")
	Action(a, "x", func(ctx context.Context, _ *Call, _ None) (None, error) {
		begun++
		if late != nil {
			<-ctx.Done()
			<-late
		}
		return None{}, nil
	})
	run := func(ctx context.Context, completeBy time.Time, remaining time.Duration) (answers, ended int) {
		req := Request{
			Action: "x", Purpose: PurposeDo, Input: []byte(`{}`), IdempotencyKey: "k", CompleteBy: completeBy, Remaining: remaining,
		}
		o := InvokeOptions{Logger: slog.New(slog.DiscardHandler), Ended: func() { ended++ }}
		a.Run(ctx, req, o, func(Reply) { answers++ })
		return answers, ended
	}
	for name, set := range map[string]struct {
		by   time.Time
		left time.Duration
	}{
		"wall":      {time.Now().Add(-time.Nanosecond), 0},
		"time left": {time.Now().Add(time.Hour), -time.Nanosecond},
	} {
		over := make(chan struct{})
		req := Request{Action: "x", Purpose: PurposeDo, Input: []byte(`{}`), IdempotencyKey: "k", CompleteBy: set.by, Remaining: set.left}
		if reply, ok := a.Invoke(t.Context(), req, InvokeOptions{Logger: slog.New(slog.DiscardHandler), Ended: func() { close(over) }}); ok {
			t.Errorf("%s: Invoke = %+v, want silence", name, reply)
		}
		<-over // else the action could begin afterwards
		if answers, ended := run(t.Context(), set.by, set.left); begun != 0 || answers != 0 || ended != 1 {
			t.Errorf("%s: begun %d times, %d answers, ended %d times; want silence", name, begun, answers, ended)
		}
	}
	if answers, ended := run(t.Context(), time.Now().Add(time.Hour), 0); begun != 1 || answers != 1 || ended != 1 {
		t.Errorf("in time: begun %d times, %d answers, ended %d times; want one of each", begun, answers, ended)
	}
	late = make(chan struct{})
	by := time.Now().Add(50 * time.Millisecond)
	ctx, cancel := context.WithDeadline(t.Context(), by)
	defer cancel()
	context.AfterFunc(ctx, func() { close(late) })
	if answers, ended := run(ctx, by, 0); answers != 0 || ended != 1 {
		t.Errorf("late: %d answers, ended %d times; want silence", answers, ended)
	}
}
