package submit

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/saga-engine/engine/dsl"
	"github.com/saga-engine/engine/engine/crypt"
	"github.com/saga-engine/engine/engine/internal/clock"
	"github.com/saga-engine/engine/engine/internal/guard"
	"github.com/saga-engine/engine/engine/internal/owner"
	"github.com/saga-engine/engine/engine/journal"
	"github.com/saga-engine/engine/engine/machine"
	"github.com/saga-engine/engine/engine/machine/status"
	"github.com/saga-engine/engine/engine/store"
	"github.com/saga-engine/engine/engine/store/naming"
	"github.com/saga-engine/engine/engine/store/replies"
)

// IDTries is the largest number of internal ids that are tried for one submission.
const IDTries = 8

// whyUnowned is the text that says why no step of a run starts while the run has no owner.
const whyUnowned = "no engine has taken the run yet"

// Limits are the limits of one run. See engine.Options.
type Limits struct {
	MaxValue, MaxRow int
	Ceilings         machine.Ceilings
}

// Config holds the parameters of New.
type Config struct {
	Store  store.Store
	Sealer crypt.Sealer // nil = a run with sensitive values is refused
	Defs   *journal.Definitions
	Specs  *owner.SpecCache
	Clock  *clock.Clock
	Limits Limits
}

// A Maker makes the first rows of runs. Several goroutines may use it.
type Maker struct {
	cfg Config
	ids *naming.RunIDSource
}

// New returns a Maker.
func New(cfg Config) *Maker { return &Maker{cfg, &naming.RunIDSource{}} }

// again handles a submission whose name has the form of a run id. Only engines assign such names,
// so a run with this name must exist already. again returns this run, with the field Exists set to
// true, or an error.
func (m *Maker) again(ctx context.Context, s Request) (store.Submitted, error) {
	run, err := store.Complete(m.cfg.Store).Find(ctx, s.Name)
	switch {
	case errors.Is(err, store.ErrNotFound):
		err = naming.Names{Name: s.Name}.Validate()
	case err != nil:
		err = &Unanswered{err}
	}
	if err != nil {
		return store.Submitted{}, fmt.Errorf("submit %q: %w", s.Workflow, err)
	}
	return store.Submitted{Run: run.Run, Name: run.Name, Exists: true}, nil
}

// prepare checks a submission, stores its definition, and evaluates the configurations of its
// agents. It returns what is needed to start the run.
func (m *Maker) prepare(ctx context.Context, s Request) (*owner.Start, error) {
	wf := s.flow()
	if wf == nil || wf.Notifies != "" { // only an engine starts notifications
		return nil, fmt.Errorf("the definition holds no such workflow")
	}
	if size := len(s.Vars.JSON()); size > m.cfg.Limits.MaxValue {
		return nil, fmt.Errorf("the variables have %d bytes, more than the %d allowed", size, m.cfg.Limits.MaxValue)
	}
	if err := m.replyable(s, wf); err != nil {
		return nil, err
	}
	line, err := lineOf(wf, s.Vars, s.Priority)
	if err != nil {
		return nil, err
	}
	if s.void() {
		line.Limit = 0 // a run that begins no step needs no place
	}
	specs, err := m.cfg.Specs.Specs(wf, s.Vars)
	if err != nil {
		return nil, err
	}
	hidden := confidential(wf, s.Vars, specs)
	// A notification must not fail later because the encryption key is missing.
	for _, block := range wf.Notify {
		own, err := m.cfg.Specs.Specs(block.Flow, s.Vars)
		if err != nil {
			return nil, err
		}
		hidden = hidden || confidential(block.Flow, s.Vars, own)
	}
	if m.cfg.Sealer == nil && hidden {
		return nil, &crypt.KeyError{Hint: crypt.HintMakeKey}
	}
	ids, err := m.workflowIDs(ctx, s)
	if err != nil {
		return nil, &Unanswered{err}
	}
	return &owner.Start{Workflow: ids[s.Workflow], Flow: wf, Specs: specs, Names: s.names(), Line: line, Past: s.Past}, nil
}

// replyable returns an error if the store of an engine cannot keep replies for the sink of a
// submission, or if the sink is an action that takes no replies. The parameter `wf` is the workflow
// of the run.
func (m *Maker) replyable(s Request, wf *dsl.Workflow) error {
	if err := replies.Check(s.ReplyTo, s.Correlation); err != nil || s.ReplyTo == "" {
		return err
	}
	if _, ok := replies.Of(m.cfg.Store); !ok {
		return fmt.Errorf("the store keeps no replies, so no run can have the reply sink %q", s.ReplyTo)
	}
	if action, agent := strings.CutPrefix(s.ReplyTo, replies.Agent); agent {
		if _, err := wf.ReplySinks.Find(action); err != nil {
			return fmt.Errorf("reply sink %q: %w", s.ReplyTo, err)
		}
	}
	return nil
}

// AssignID chooses an internal id for a run and returns it. It sets the public name, the
// unique key and the checks in st. It returns an error if one of them or the deadline cannot be
// evaluated, or if a name is not valid.
func (m *Maker) AssignID(s Request, st *owner.Start, now time.Time) (status.RunID, error) {
	run, err := m.ids.Next(now)
	if err != nil {
		return 0, err
	}
	st.Public = st.Names.Public(run)
	scope := &dsl.Scope{
		Run:  dsl.RunInfo{ID: st.Public, Workflow: st.Flow.Name, StartedAt: now, Trigger: s.Trigger},
		Vars: s.Vars,
	}
	if st.Flow.UniqueKey != nil && !s.void() {
		if st.Names.Key, err = st.Flow.UniqueKey(scope); err != nil {
			return 0, fmt.Errorf("evaluate unique.key: %w", err)
		}
		if st.Names.Key == "" {
			return 0, errors.New("unique.key is empty")
		}
		st.Names.KeyScope = keyScopeOf(st.Flow)
	}
	scope.Run.Key = st.Names.Key
	if !s.void() {
		if st.Checks, err = checksOf(st.Flow, scope); err != nil {
			return 0, err
		}
	}
	if st.Flow.Deadline != nil {
		if _, err := st.Flow.Deadline(scope); err != nil {
			return 0, fmt.Errorf("evaluate deadline: %w", err)
		}
	}
	return run, st.Names.Validate()
}

// workflowIDs stores the definition of the run, if it is not stored yet. It returns the ids of the
// workflows of the definition, by name. A child run has the definition that its parent had when the
// call for the child began. This definition is stored already.
func (m *Maker) workflowIDs(ctx context.Context, s Request) (map[string]store.WorkflowID, error) {
	if s.Child == nil {
		return m.cfg.Defs.Put(ctx, s.Definition)
	}
	digest := s.Child.Flow.Digest
	ids, err := m.cfg.Defs.Family(ctx, digest, func() (store.WorkflowID, error) { return m.parentWorkflow(ctx, s.Child.Parent, digest) })
	if err != nil {
		return nil, fmt.Errorf("find the definition of the parent: %w", err)
	}
	return ids, nil
}

// parentWorkflow returns the id of the workflow that a run had while it had the definition with the
// given digest. Outside of the journal, the store keeps only the first workflow of a run. If the
// run was moved (engine migrate), only its journal names its later workflows.
func (m *Maker) parentWorkflow(ctx context.Context, run status.RunID, digest string) (store.WorkflowID, error) {
	full, defs := store.Complete(m.cfg.Store), m.cfg.Defs
	row, err := full.Run(ctx, run)
	if err != nil {
		return 0, err
	}
	if wf, err := defs.Workflow(ctx, row.Workflow); err != nil || wf.Digest == digest {
		return row.Workflow, err
	}
	loaded, err := journal.LoadState(ctx, full, m.cfg.Sealer, defs, run)
	if err != nil {
		return 0, err
	}
	for _, move := range loaded.State.Run().Moves {
		id := store.WorkflowID(move.Workflow)
		if wf, err := defs.Workflow(ctx, id); err != nil || wf.Digest == digest {
			return id, err
		}
	}
	return 0, fmt.Errorf("run %s never had definition %.12s", row.Name, digest)
}

// Unowned returns the first row of a run without an owner, with the event that starts the run.
func (m *Maker) Unowned(st *owner.Start, event machine.Started, now time.Time) (store.Transition, error) {
	slots := map[string]machine.Slot{st.Flow.ChildAgent(): {Why: whyUnowned}}
	for agent := range st.Specs {
		slots[agent] = machine.Slot{Why: whyUnowned}
	}
	nobody, state := store.EngineID(0), machine.NewState()
	t := store.Transition{Run: event.RunID, Workflow: st.Workflow, Owner: &nobody, Names: &st.Names, Checks: st.Checks, Replaces: st.Replaces}
	err := guard.Do(func() (err error) {
		rec := machine.Decide(st.Flow, state, machine.Input{At: now, Event: event, Slots: slots, Ceilings: m.cfg.Limits.Ceilings,
			Allowance: dsl.NewAllowance(machine.MaxDecisionCost), Past: st.Past})
		if rec.Empty() {
			return errors.New("the decision accepts no run")
		}
		owner.AddRecord(&t, rec, state, st.Flow)
		owner.SetRoom(&t, st.Names.Workflow, now, event)
		t.At = rec.At()
		t.Data, _, err = journal.NewRow{Run: t.Run, At: t.At, Records: []machine.Record{rec}}.Encode(m.cfg.Sealer, &journal.Scratch{})
		return err
	})
	if err != nil {
		return store.Transition{}, err
	}
	if len(t.Data) > m.cfg.Limits.MaxRow {
		return store.Transition{}, fmt.Errorf("its first row has %d bytes, more than the %d allowed", len(t.Data), m.cfg.Limits.MaxRow)
	}
	t.NextCheck = st.Line.Rank(t.At) // engines claim the run with the earliest NextCheck first
	if t.State.Final() {
		t.NextCheck = store.Never // the workflow has no steps, so the run has ended already
	}
	return t, nil
}
