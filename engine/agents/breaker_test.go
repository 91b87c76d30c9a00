package agents

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/saga-engine/engine/dsl"
	"github.com/saga-engine/engine/engine/invoke"
	"github.com/saga-engine/engine/sdk"
)

// TestVerdict: what a call says about its agent (S34). Business codes,
// cancellations and what was not sent say nothing.
func TestVerdict(t *testing.T) {
	later, past := time.Now().Add(time.Hour), time.Now().Add(-time.Second)
	reply := func(o sdk.Outcome, code string) sdk.Reply { return sdk.Reply{Outcome: o, Code: code} }
	for name, tc := range map[string]struct {
		reply      sdk.Reply
		err        error
		completeBy time.Time
		want       error
	}{
		"result":             {reply(sdk.OutcomeResult, ""), nil, later, nil},
		"lookup, not done":   {reply(sdk.OutcomeNotDone, ""), nil, later, nil},
		"business code":      {reply(sdk.OutcomeFailed, "card_declined"), nil, later, errExcluded},
		"invalid":            {reply(sdk.OutcomeFailed, sdk.CodeInvalid), nil, later, errExcluded},
		"aborted":            {reply(sdk.OutcomeFailed, sdk.CodeAborted), nil, later, errExcluded},
		"unavailable":        {reply(sdk.OutcomeFailed, sdk.CodeUnavailable), nil, later, errBroken},
		"rate limited":       {reply(sdk.OutcomeFailed, sdk.CodeRateLimited), nil, later, errBroken},
		"lost":               {reply(sdk.OutcomeUnknown, sdk.CodeAgentLost), nil, later, errBroken},
		"bad reply":          {reply(sdk.OutcomeUnknown, sdk.CodeBadReply), nil, later, errBroken},
		"unknown, cancelled": {reply(sdk.OutcomeUnknown, sdk.CodeAborted), nil, later, errExcluded},
		"silence":            {sdk.Reply{}, context.DeadlineExceeded, past, errBroken},
		"cancelled":          {sdk.Reply{}, context.Canceled, later, errExcluded},
		"not sent":           {sdk.Reply{}, &invoke.Deferred{Why: "full"}, past, errExcluded},
	} {
		t.Run(name, func(t *testing.T) {
			if got := verdict(tc.reply, tc.err, tc.completeBy); !errors.Is(got, tc.want) {
				t.Errorf("got %v, want %v", got, tc.want)
			}
		})
	}
}

// TestNoBreaker: without settings nothing ever opens.
func TestNoBreaker(t *testing.T) {
	b := newBreaker("x", dsl.Breaker{}, func(tr transition) { t.Errorf("changed: %+v", tr) }, func(fn func()) bool { fn(); return true })
	for range 100 {
		done, err := b.allow()
		if err != nil {
			t.Fatal(err)
		}
		done(errBroken)
		b.report()
	}
	if _, _, limited := b.allowed(); limited {
		t.Error("the breaker limits calls")
	}
}
