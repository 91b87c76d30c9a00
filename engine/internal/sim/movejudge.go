package sim

import (
	"context"
	"slices"
	"strconv"
	"strings"

	"github.com/saga-engine/engine/engine/machine"
	"github.com/saga-engine/engine/engine/store"
	"github.com/saga-engine/engine/engine/store/notice"
)

// movedLocked gives a run its new definition, if the record migrates the run. It checks that the
// record moves the run to the workflow and definition that the verb names. It also checks that a
// refused migration changes nothing, and that no other event moves the run.
func (k mover) movedLocked(s *runLog, rec machine.Record) {
	if k.kin == nil {
		return
	}
	to := rec.MovedTo()
	switch ev := rec.Event().(type) {
	case machine.Migrated:
		if to != ev.Workflow {
			k.w.faultLocked("%s: the record of a migration to workflow %d moves the run to %d", s.name, ev.Workflow, to)
			return
		}
		k.moveLocked(s, rec, ev)
	case machine.Refused:
		if ev.Verb != "migrate" {
			break
		}
		k.hits["migrations refused by the owner"]++
		if to != 0 || len(rec.Commands()) > 0 || len(rec.NewNodes()) > 0 || len(rec.Reached()) > 0 {
			k.w.faultLocked("%s: a migration was refused (%s), and changes the run", s.name, ev.Reason)
		}
	default:
		if to != 0 {
			k.w.faultLocked("%s: %T moves the run to workflow %d", s.name, ev, to)
		}
	}
}

// moveLocked gives a run its new workflow, checks this workflow, and records which steps have new
// names.
func (k mover) moveLocked(s *runLog, rec machine.Record, ev machine.Migrated) {
	next, err := k.defs.Workflow(context.WithoutCancel(k.w.ctx), store.WorkflowID(ev.Workflow))
	if err != nil {
		k.w.faultLocked("%s: the definition of a migration cannot be read: %v", s.name, err)
		return
	}
	before := s.flow
	s.flow = rec.Moved(before, next)
	if s.flow.Name != before.Name || s.flow.Digest != ev.Digest || k.moduleOf(s.flow) == nil || s.flow.Digest == before.Digest {
		k.w.faultLocked("%s of workflow %s is moved to workflow %s, definition %.12s, want %.12s", s.name, before.Name, s.flow.Name, s.flow.Digest, ev.Digest)
	}
	s.kin.flows = append(s.kin.flows, held{int32(s.rows - 1), s.flow})
	for i, is := range s.flow.Steps {
		if !is.Gone && (i >= len(before.Steps) || before.Steps[i].Gone) {
			// The step is new. An earlier step that is removed now may have had the same name, if
			// two people moved the run forward and back again. Then the map must not lead from this
			// name to the later name of the earlier step.
			delete(s.kin.is, is.Name)
		}
		if i >= len(before.Steps) || is.Gone || before.Steps[i].Gone || is.Name == before.Steps[i].Name {
			continue
		}
		s.kin.is[before.Steps[i].Name], s.kin.was[is.Name] = is.Name, before.Steps[i].Name
		k.hits["migrations that rename a step"]++
	}
	k.hits["migrations"]++
	if s.kin.parent != 0 {
		k.hits["migrations of children"]++
	}
}

// originLocked checks the definition of a run that the engine has started. A child run, or the run
// of a group, must have a definition that its parent had when its call began, or later. A
// notification must have the definition that its run had when it reached the state.
func (k mover) originLocked(s *runLog, rec machine.Record) {
	ev, ok := rec.Event().(machine.Started)
	if k.kin == nil || !ok {
		return
	}
	ctx := context.WithoutCancel(k.w.ctx)
	switch p := k.w.stories[ev.Parent]; {
	case p != nil:
		k.readLocked(ctx, p)
		begun, ok := p.kin.begun[p.kin.first(ev.ParentStep)]
		if !ok {
			k.w.faultLocked("%s begins before the call of step %s of %s", ev.Name, ev.ParentStep, p.name)
			return
		}
		if !slices.ContainsFunc(p.kin.flows[begun:], func(h held) bool { return h.flow.Digest == s.flow.Digest }) {
			k.w.faultLocked("%s has definition %.12s, but its parent %s had %.12s when the call began", ev.Name, s.flow.Digest, p.name, p.kin.flows[begun].flow.Digest)
		}
		switch {
		case begun == 0:
		case strings.Contains(strings.TrimPrefix(s.flow.Name, "kit."), "."):
			k.hits["groups of moved runs"]++
		default:
			k.hits["children of moved runs"]++
		}
	case s.flow.Notifies != "":
		k.announcesLocked(ctx, s, ev.Name)
	}
}

// announcesLocked checks the definition of a notification.
func (k mover) announcesLocked(ctx context.Context, s *runLog, name string) {
	at := strings.LastIndex(name, ".notify.")
	parts := strings.Split(name[at+len(".notify."):], ".")
	seq, err := strconv.ParseInt(parts[1], 10, 32)
	if err != nil {
		k.w.faultLocked("%s is no name of a notification: %v", name, err)
		return
	}
	i := slices.IndexFunc(k.w.order, func(p *runLog) bool {
		n := notice.Notice{Run: p.id, State: parts[0], Seq: int32(seq)}
		return p.rows > 0 && strings.HasPrefix(name, n.Name(p.name, 0))
	})
	if i < 0 {
		k.w.faultLocked("%s announces a run that the journal does not know", name)
		return
	}
	p := k.w.order[i]
	k.readLocked(ctx, p)
	want := p.kin.at(int32(seq))
	announces := false
	for _, block := range want.Notifications(parts[0]) {
		announces = announces || block.Flow.Name == s.flow.Name
	}
	if s.flow.Digest != want.Digest || !announces {
		k.w.faultLocked("%s has definition %.12s, but %s had %.12s when it was %s", name, s.flow.Digest, p.name, want.Digest, parts[0])
	} else if want != p.kin.flows[0].flow {
		k.hits["notifications of moved runs"]++
	}
}

// announces reports whether a run is a notification.
func (w people) announces(s *runLog) bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	return announces(s)
}
