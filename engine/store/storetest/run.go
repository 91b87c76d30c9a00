package storetest

import (
	"testing"
)

// Run tests a store against every rule. The function `open` returns an empty store.
func Run(t *testing.T, open func(t *testing.T) Harness) {
	var rules []rule
	for _, part := range [][]rule{commitRules, unknownRules, ownerRules, memberRules, submitRules, batchRules, viewRules, moveRules, readRules, inboxRules, consumedRules, heardRules, passRules, keptRules, filterRules, familyRules, heirRules,
		needed(keepsNotices, noticeRules), needed(keepsReplies, replyRules), needed(keepsGoals, goalRules), needed(keepsGoals, replaceRules), needed(hasHands, handRules), needed(hasEvidence, evidenceRules), needed(publishes, scheduleRules), needed(takesEvents, eventRules), needed(takesEvents, eventListRules), needed(hasSnapshots, snapshotRules)} {
		rules = append(rules, part...)
	}
	for _, r := range rules {
		t.Run(r.name, func(t *testing.T) {
			h := open(t)
			if r.need != nil && !r.need(h) {
				return // the rule is for a property that this store does not have
			}
			t.Cleanup(func() {
				if t.Failed() {
					t.Logf("the rule: %s", r.why)
				}
			})
			r.run(newWorld(t, h))
		})
	}
}
