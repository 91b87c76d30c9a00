package owner

import (
	"context"
	"slices"

	"github.com/saga-engine/engine/engine/internal/call"
	"github.com/saga-engine/engine/engine/journal"
	"github.com/saga-engine/engine/engine/machine"
)

// takeOver makes this engine the owner of a run whose owner is gone. Steps
// that were held for want of a slot at the former owner are tried here.
//
// The messages that wait for the run come first (language.md, Verbs before
// work): a person who has cancelled or paused a run does not expect another call
// of it. So the row that makes this engine the owner holds what was decided on
// them, and nothing starts before the last of them. An adoption whose messages
// were not read has them read, and takes place after that.
//
// An answer that waits in the inbox and reached an engine before its attempt's
// complete-by counts, although time has passed since: it is decided before the
// takeover, but what follows from it starts after.
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

// begun makes the event that starts what was held during a takeover.
func (sh *shard) begun() *delivery {
	return &delivery{Answer: call.Answer{Event: machine.SlotsFreed{}, Arrived: sh.s.n.Clock.Now()}}
}

// earlier compares deliveries by their arrival.
func earlier(a, b *delivery) int { return a.Arrived.Compare(b.Arrived) }

// wanted reports whether the run is to be taken from its present owner.
func (r *ownedRun) wanted() bool {
	return slices.ContainsFunc(r.adopts, func(a Adoption) bool { return a.From == r.owner })
}

// heardMore goes on with a takeover that found more messages than are read at
// once: when all were read, what was held may start.
func (sh *shard) heardMore(r *ownedRun, more bool) {
	if more {
		r.inbox.wanted, r.inbox.first = true, true
		return
	}
	r.unheard = false
	r.pending = append(r.pending, sh.begun())
}
