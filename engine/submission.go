package engine

import (
	"time"

	"github.com/saga-engine/engine/dsl"
	"github.com/saga-engine/engine/engine/internal/children"
	"github.com/saga-engine/engine/engine/internal/owner"
	"github.com/saga-engine/engine/engine/machine"
	"github.com/saga-engine/engine/engine/machine/status"
	"github.com/saga-engine/engine/engine/moving"
	"github.com/saga-engine/engine/engine/store/naming"
)

// A Submission asks for a new run.
type Submission struct {
	Definition *dsl.Definition
	Workflow   string    // name of one of the definition's workflows
	Vars       dsl.Value // values of the variables, as dsl.Workflow.Bind returns them
	Name       string    // public id of the run; "" = made from the internal id
	By         string    // person or program that submits the run; only for display
	// StartBy is the time by which the first step must begin. If no step has begun then, the run
	// fails with the code not_started, and nothing was done (S65); zero = there is no such time.
	StartBy time.Time
	// Priority is the priority of the run, from 0 to 100; nil = as the workflow says.
	Priority *int

	// ReplyTo names the sink to which the engines post the replies of the run: table:QUEUE,
	// webhook:NAME, webhook:URL or agent:NAME.ACTION. "" = the run has no replies. Each reply repeats the text in
	// Correlation, which has at most 200 bytes.
	ReplyTo, Correlation string

	trigger string          // how the run was started; "" = "manual"
	kind    naming.Trigger  // how the run was started, as a number for the store
	child   *children.Order // set if a step of another run submits the run; otherwise nil
	from    moving.From     // what the run takes over from the ended run `past`; zero = nothing
	past    *moving.Past
}

// flow returns the workflow of the run; nil = there is none with this name.
func (s *Submission) flow() *dsl.Workflow {
	if s.child != nil {
		return s.child.Flow
	}
	return s.Definition.Workflow(s.Workflow)
}

// names returns the names of the run. Its unique key is not known yet.
func (s *Submission) names() naming.Names {
	names := naming.Names{Workflow: s.Workflow, Name: s.Name, From: s.from.Run, Trigger: s.kind}
	if s.child != nil {
		names.Parent, names.Trigger = s.child.Parent, naming.ByParent
	}
	return names
}

// started returns the event that starts the run.
func (s *Submission) started(run status.RunID, st *owner.Start, waits bool) machine.Started {
	ev := machine.Started{
		RunID: run, Name: st.Public, Key: st.Names.Key, Vars: s.Vars, Trigger: "manual", StartedBy: s.By,
		Line: st.Line, Waits: waits && st.Line.Limit > 0 || st.Replaces != nil, StartBy: s.StartBy, From: s.from, ReplyTo: s.ReplyTo, Correlation: s.Correlation,
	}
	if s.trigger != "" {
		ev.Trigger = s.trigger
	}
	if o := s.child; o != nil {
		ev.Trigger, ev.Until, ev.Void = "parent", o.Until, o.Void
		ev.Parent, ev.ParentName, ev.ParentStep = o.Parent, o.ParentName, o.ParentStep
		if !o.Void {
			ev.Signals = o.Call.Signals
		}
	}
	return ev
}

// void reports whether the run must begin no step. Such a run takes no unique key.
func (s *Submission) void() bool { return s.child != nil && s.child.Void }
