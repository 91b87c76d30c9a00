package main

import (
	"context"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"time"

	"github.com/saga-engine/engine/sdk"
)

// crashCode is the exit status with which the process ends if an input asks it to crash.
const crashCode = 86

// play does what the script s says. It applies the effect e, unless the script asks for a definite
// failure, or the call ends before the effect: by a crash, by a hang, or because ctx ends. It
// returns the value of the effect, or the error with which the call ends.
func (m *mock) play(ctx context.Context, c *sdk.Call, s script, e effect) (any, error) {
	gate, err := m.gate(s.Hold)
	if err != nil {
		return nil, err
	}
	arrival, err := m.ledger.arrive(c, e)
	if err != nil {
		return nil, err
	}
	if f := s.Fail; f != nil && !f.Unknown && within(arrival, f.Times) {
		if err := wait(ctx, c, s.Latency, gate); err != nil {
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
	if err := wait(ctx, c, s.Latency, gate); err != nil {
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

// within reports whether a call gets an answer that the script gives only to the first calls with a
// key. The parameter n is the number of the call among the calls with its key, from 1. The
// parameter `times` is how many first calls get the answer; 0 = all calls.
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

// gate returns the path of the file for which a call waits. The parameter `hold` is the name of the
// file; "" = the call waits for no file, and the path is "". The file is in the directory of the
// ledger, because a test knows that directory. The method `gate` returns an error if `hold` is not
// a file name, or if there is no ledger file.
func (m *mock) gate(hold string) (path string, err error) {
	switch {
	case hold == "":
		return "", nil
	case m.ledger.path == "":
		return "", invalidHold("the agent is configured without a ledger, so there is no directory to look in")
	case hold == "." || !filepath.IsLocal(hold) || filepath.Base(hold) != hold:
		return "", invalidHold("must be the name of a file, without a directory")
	}
	return filepath.Join(filepath.Dir(m.ledger.path), hold), nil
}

func invalidHold(why string) error {
	return &sdk.Failure{Code: sdk.CodeInvalid, Message: "hold: " + why, Permanent: true}
}

// Pauses of a call that waits.
const (
	beat = 100 * time.Millisecond // pause between two heartbeats
	poll = 20 * time.Millisecond  // pause between two checks for the file for which the call waits
)

// wait waits for the latency, and then until a file exists. The parameter `gate` is the path of
// this file; if it is "", wait waits only for the latency. Meanwhile it sends heartbeats. If ctx
// ends first, it returns the error of ctx.
func wait(ctx context.Context, c *sdk.Call, latency time.Duration, gate string) error {
	if err := ctx.Err(); err != nil || latency <= 0 && gate == "" {
		return err
	}
	beats := time.NewTicker(beat)
	defer beats.Stop()
	if latency > 0 {
		if err := sleep(ctx, c, latency, beats.C); err != nil {
			return err
		}
	}
	if gate == "" {
		return nil
	}
	return awaitFile(ctx, c, gate, beats.C)
}

// sleep waits for the latency. It sends a heartbeat for each value from the channel `beats`.
// If ctx ends first, it returns the error of ctx.
func sleep(ctx context.Context, c *sdk.Call, latency time.Duration, beats <-chan time.Time) error {
	start := time.Now()
	timer := time.NewTimer(latency)
	defer timer.Stop()
	for {
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-timer.C:
			return nil
		case <-beats:
			c.Heartbeat(float64(time.Since(start))/float64(latency), "waiting")
		}
	}
}

// awaitFile waits until a file exists at path. It sends a heartbeat for each value from the
// channel `beats`. The heartbeats report no progress, because the end of the wait is not
// known.
func awaitFile(ctx context.Context, c *sdk.Call, path string, beats <-chan time.Time) error {
	polls := time.NewTicker(poll)
	defer polls.Stop()
	for {
		if _, err := os.Stat(path); err == nil || !errors.Is(err, fs.ErrNotExist) {
			return err
		}
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-polls.C:
		case <-beats:
			c.Heartbeat(0, "waiting")
		}
	}
}
