package owner

import (
	"context"
	"slices"

	"github.com/saga-engine/engine/engine/internal/call"
	"github.com/saga-engine/engine/engine/journal"
	"github.com/saga-engine/engine/engine/machine"
)

// takeOver makes this engine the owner of a run whose owner is dead or late. Steps that
// the former owner held for want of a slot are tried here.
//
// Waiting messages are decided first (language.md, Verbs before work): after a person has
// cancelled or paused a run, no further call may start. So the row that makes this engine
// the owner also holds the decisions on the messages, and no call starts before the last
// of them. If the messages of an adoption were not read, they are read first.
//
// An answer in the inbox counts if it reached an engine before its attempt's complete-by,
// although complete-by may have passed since. It is decided before the takeover. The calls
// that follow from it start after the takeover.
func (sh *shard) takeOver(ctx context.Context, r *ownedRun, a Adoption) {
	if !a.Read {
		r.inbox.wanted, r.inbox.first = true, true
		sh.readInbox(ctx, r)
		return
	}
	r.suspect, r.deaths = a.Suspect, a.Deaths
	for _, l := range a.Messages {
		if l.Err == nil && !r.inbox.held[l.ID] {
			r.inbox.hold(l.ID)
			r.pending = append(r.pending, l.delivery())
		}
	}
	r.heard, r.unheard = nil, len(a.Messages) >= InboxLimit
	if !r.unheard {
		heard := int32(len(a.Messages))
		r.heard = &heard
	}
	now := sh.s.n.Clock.Now()
	var inTime, mail, rest []*delivery
	room := sh.s.n.cfg.Options.MaxBatchBytes // the takeover must be in the same row
	for _, d := range r.pending {
		r.time(d)
		switch {
		case d.message == 0:
			rest = append(rest, d)
		case d.answers() && d.Arrived.Before(d.CompleteBy) && !now.Before(d.CompleteBy) &&
			len(inTime) < maxEvents/2 && journal.EventSize(d.Event) <= room:
			d.quiet = true
			inTime, room = append(inTime, d), room-journal.EventSize(d.Event)
		default:
			mail = append(mail, d)
		}
	}
	slices.SortStableFunc(mail, earlier)
	for i, d := range mail {
		d.quiet = r.unheard || i < len(mail)-1
	}
	taken := &delivery{Answer: call.Answer{Event: machine.TakenOver{By: int32(sh.s.engine), From: int32(r.owner)}, Arrived: now}, quiet: len(mail) > 0}
	r.pending = append(append(inTime, taken), mail...)
	if !r.unheard {
		r.pending = append(r.pending, sh.begun())
	}
	r.pending = append(r.pending, rest...)
	sh.step(ctx, r)
}

// begun returns the event that starts steps which were held during a takeover.
func (sh *shard) begun() *delivery {
	return &delivery{Answer: call.Answer{Event: machine.SlotsFreed{}, Arrived: sh.s.n.Clock.Now()}}
}

// earlier compares deliveries by their arrival.
func earlier(a, b *delivery) int { return a.Arrived.Compare(b.Arrived) }

// wanted reports whether a waiting event asks to take the run from its present owner.
func (r *ownedRun) wanted() bool {
	return slices.ContainsFunc(r.adopts, func(a Adoption) bool { return a.From == r.owner })
}

// heardMore continues a takeover that found more messages than one read returns. Once
// all messages are read, held steps may start.
func (sh *shard) heardMore(r *ownedRun, more bool) {
	if more {
		r.inbox.wanted, r.inbox.first = true, true
		return
	}
	r.unheard = false
	r.pending = append(r.pending, sh.begun())
}
