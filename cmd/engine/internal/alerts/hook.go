package alerts

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"time"

	"github.com/saga-engine/engine/cmd/engine/internal/cli"
	"github.com/saga-engine/engine/cmd/engine/internal/words"
	"github.com/saga-engine/engine/cmd/internal/pause"
	"github.com/saga-engine/engine/engine/store"
)

// A Hook pushes alerts to a program or a webhook: at least once, in order, and without delaying
// runs. It leaves out old alerts (hookOld), and gives up alerts that the receiver refuses
// (hookRefusals). Only one engine of a state pushes at a time: the store gives one engine the
// permission to push, for one minute. This permission is called a watch. If the engine dies,
// another engine gets the next watch.
type Hook struct {
	hint   chan struct{} // receives a value when the method Wake is called
	store  hookStore
	to     pusher
	log    *slog.Logger
	counts hookCounts
	since  time.Time // alerts raised before this time are not pushed

	watch    time.Duration // how long one permission to push lasts
	patience time.Duration // how long one push may take
	// Longest pause between two looks for waiting alerts. The shortest pause is a tenth of this
	// value.
	poll        time.Duration
	backoff     time.Duration // longest pause after failed pushes
	backoffFrom time.Duration // pause after the first failed push; each further failure doubles it

	// Pause before the next look for waiting alerts. It is kept from one watch to the next.
	idle     time.Duration
	failures int       // pushes that failed in a row
	refusals int       // how often the receiver has refused the first waiting alert
	next     time.Time // no push is tried before this time
}

// hookStore has the methods of a store that a Hook calls.
type hookStore interface {
	Undelivered(ctx context.Context, limit int) ([]store.AlertRow, error)
	Delivered(ctx context.Context, ids []int64) error
	Pass(ctx context.Context, name string, period time.Duration) (bool, error)
}

// hookCounts counts the pushes, and the alerts that the hook stopped trying to push.
type hookCounts interface {
	Pushed(ok bool)
	GivenUp()
}

// A pusher delivers one alert. The method push returns nil if the receiver has taken the
// alert.
type pusher interface {
	push(ctx context.Context, a store.AlertRow, body []byte) error
	String() string // names the receiver, without secrets
}

const (
	hookWatch    = time.Minute
	hookPatience = 30 * time.Second
	// If an alert is older than hookOld when the engine starts, the hook does not push it.
	hookOld   = 24 * time.Hour
	hookBatch = 100
	// hookRefusals is how often the receiver may refuse one alert. Then the hook gives up this
	// alert and pushes the next one. The tries until then take about an hour or more.
	hookRefusals = 20
)

// NewHook makes a hook that pushes the alerts of the store with the given pusher. The hook does
// nothing before its method Run is called.
func NewHook(store hookStore, to pusher, log *slog.Logger, counts hookCounts) *Hook {
	return &Hook{
		hint: make(chan struct{}, 1), store: store, to: to, log: log, counts: counts, since: time.Now().Add(-hookOld), watch: hookWatch, patience: hookPatience,
		poll: time.Minute, backoff: 5 * time.Minute, backoffFrom: time.Second,
	}
}

// alertBody returns the JSON object that is pushed for the alert a.
func alertBody(a store.AlertRow) ([]byte, error) {
	body, err := json.Marshal(map[string]any{
		"format_version": cli.FormatVersion, "id": a.ID, "kind": a.Kind, "run": a.Name, "workflow": a.Workflow, "key": a.Key, "step": a.Step,
		"code": a.Code, "message": a.Message, "at": a.At.UTC().Format(time.RFC3339Nano),
	})
	if err != nil {
		return nil, fmt.Errorf("encode alert %d: %w", a.ID, err)
	}
	return body, nil
}

// Run pushes alerts until ctx ends.
func (h *Hook) Run(ctx context.Context) {
	h.log.Info("alerts are pushed", "to", h.to.String())
	for ctx.Err() == nil {
		asked := time.Now()
		mine, err := h.store.Pass(ctx, "outbox", h.watch)
		switch {
		case err != nil:
			// The level Debug is enough, because other code of the engine logs that the store
			// does not answer.
			h.log.Debug("ask to push alerts", "error", err)
			_ = pause.For(ctx, h.poll)
		case !mine:
			_ = pause.For(ctx, h.poll)
		default:
			h.watchUntil(ctx, asked.Add(h.watch))
		}
	}
}

// watchUntil pushes alerts until the time `end`, when the watch of this engine ends. Another engine
// may push alerts from this time on. So watchUntil stops a push that has not ended by then.
func (h *Hook) watchUntil(ctx context.Context, end time.Time) {
	ctx, cancel := context.WithDeadline(ctx, end)
	defer cancel()
	for ctx.Err() == nil {
		n, err := h.drain(ctx, end)
		switch {
		case n > 0 || h.idle == 0:
			h.idle = h.poll / 10
		case err == nil:
			h.idle = min(2*h.idle, h.poll)
		}
		h.doze(ctx, h.idle)
	}
}

// Wake makes the hook look for waiting alerts soon. It does not block. On a nil hook it does
// nothing.
func (h *Hook) Wake() {
	if h == nil {
		return
	}
	select {
	case h.hint <- struct{}{}:
	default:
	}
}

// doze waits until d has passed, another goroutine calls Wake, or ctx ends.
func (h *Hook) doze(ctx context.Context, d time.Duration) {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
	case <-h.hint:
		h.idle = h.poll / 10
	case <-ctx.Done():
	}
}

// drain pushes the waiting alerts in order, and returns how many it has pushed. It returns when no
// alert waits, the store fails, or ctx ends.
func (h *Hook) drain(ctx context.Context, end time.Time) (int, error) {
	sent := 0
	for ctx.Err() == nil {
		_ = pause.For(ctx, time.Until(h.next))
		alerts, err := h.store.Undelivered(ctx, hookBatch)
		if err != nil {
			if ctx.Err() == nil {
				h.log.Debug("look for alerts to push", "error", err)
			}
			return sent, err
		}
		if len(alerts) == 0 {
			return sent, nil
		}
		for _, a := range alerts {
			err := h.one(ctx, a, end)
			if err == nil {
				sent, h.failures, h.refusals = sent+1, 0, 0
				continue
			}
			if ctx.Err() != nil {
				return sent, ctx.Err()
			}
			h.failures++
			// If the receiver cannot take an alert now, the hook tries it again without end.
			// If the receiver refuses the alert, the hook gives up after hookRefusals tries.
			if refused := (*refusedError)(nil); errors.As(err, &refused) {
				h.refusals++
			}
			if h.refusals >= hookRefusals {
				h.log.Error("the receiver refuses an alert again and again, so it is not pushed any more", "to", h.to.String(), "alert", a.ID, "run", a.Name, "kind", a.Kind, "error", err)
				if err := h.store.Delivered(ctx, []int64{a.ID}); err == nil {
					h.counts.GivenUp()
					h.failures, h.refusals = 0, 0
					continue
				}
			}
			wait := h.wait(h.failures)
			h.next = time.Now().Add(wait)
			h.log.Warn("alert could not be pushed; trying again", "to", h.to.String(), "alert", a.ID, "run", a.Name, "kind", a.Kind,
				"error", err, "in", wait.String())
			// The next read of the store begins with this alert again, so the alerts stay in order.
			break
		}
	}
	return sent, ctx.Err()
}

// wait returns the pause after the given number of failures in a row.
func (h *Hook) wait(failures int) time.Duration {
	d := h.backoffFrom
	for ; failures > 1 && d < h.backoff; failures-- {
		d *= 2
	}
	return min(d, h.backoff)
}

// one is the method that pushes the alert a. It does not push an alert that is too old.
// Afterwards, also for an alert that is too old, it records in the store that the alert was
// delivered. If the engine dies between the push and this record, another engine pushes the
// alert again.
func (h *Hook) one(ctx context.Context, a store.AlertRow, end time.Time) error {
	if a.At.Before(h.since) {
		h.log.Info("an alert is too old, so it is not pushed", "alert", a.ID, "run", a.Name, "kind", a.Kind, "at", words.Stamp(a.At))
	} else if err := h.push(ctx, a, end); err != nil {
		return err
	}
	if err := h.store.Delivered(context.WithoutCancel(ctx), []int64{a.ID}); err != nil {
		return fmt.Errorf("note that it was pushed: %w", err)
	}
	return nil
}

func (h *Hook) push(ctx context.Context, a store.AlertRow, end time.Time) error {
	if least := h.patience / 3; time.Until(end) < least {
		<-ctx.Done() // this watch ends too soon for a push; the next watch begins with this alert
		return ctx.Err()
	}
	body, err := alertBody(a)
	if err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(ctx, h.patience)
	defer cancel()
	err = h.to.push(ctx, a, body)
	h.counts.Pushed(err == nil)
	return err
}

// A refusedError is the error of a receiver that will never take this alert.
type refusedError struct{ error }

// Unwrap returns the error with the receiver's answer.
func (e *refusedError) Unwrap() error { return e.error }
