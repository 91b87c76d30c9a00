package main

import (
	"context"
	"os"
	"time"

	"github.com/saga-engine/engine/sdk"
)

// crashCode is the exit status of this process if a script asks for a crash.
const crashCode = 86

// play answers a call as its script says, and applies the effect e.
func (m *mock) play(ctx context.Context, c *sdk.Call, s script, e effect) (any, error) {
	arrival, err := m.ledger.arrive(c, e)
	if err != nil {
		return nil, err
	}
	if f := s.Fail; f != nil && !f.Unknown && within(arrival, f.Times) {
		if err := wait(ctx, c, s.Latency); err != nil {
			return nil, &sdk.Failure{Code: sdk.CodeAborted, Err: err}
		}
		return nil, f.failure()
	}
	apply := func() (any, error) { return m.ledger.apply(c, e) }
	if s.Effect != "after" {
		value, err := apply()
		if err != nil {
			return nil, err
		}
		apply = func() (any, error) { return value, nil }
	}
	if s.Hang && within(arrival, s.Times) {
		select {}
	}
	if err := wait(ctx, c, s.Latency); err != nil {
		return nil, sdk.Unknown(err, sdk.CodeAborted)
	}
	if s.Crash && within(arrival, s.Times) {
		os.Exit(crashCode)
	}
	value, err := apply()
	if err != nil {
		return nil, err
	}
	if f := s.Fail; f != nil && f.Unknown && within(arrival, f.Times) {
		return nil, sdk.Unknown(f.failure(), f.code())
	}
	return value, nil
}

// within reports whether the n-th call of a key is among the first `times` calls. 0 means
// all calls.
func within(n, times int) bool { return times == 0 || n <= times }

func (f *failure) code() string {
	if f.Code == "" {
		return sdk.CodeUnavailable
	}
	return f.Code
}

func (f *failure) text() string {
	if f.Message == "" {
		return "as the script says"
	}
	return f.Message
}

func (f *failure) failure() error {
	return &sdk.Failure{Code: f.code(), Message: f.text(), Permanent: f.Permanent, RetryAfter: f.RetryAfter}
}

// beat is the time between two heartbeats of a call that waits.
const beat = 100 * time.Millisecond

// wait waits for the latency and sends heartbeats. It returns ctx's error if ctx ends
// first.
func wait(ctx context.Context, c *sdk.Call, latency time.Duration) error {
	if latency <= 0 {
		return ctx.Err()
	}
	start := time.Now()
	timer := time.NewTimer(latency)
	defer timer.Stop()
	ticker := time.NewTicker(beat)
	defer ticker.Stop()
	for {
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-timer.C:
			return nil
		case <-ticker.C:
			c.Heartbeat(float64(time.Since(start))/float64(latency), "waiting")
		}
	}
}
