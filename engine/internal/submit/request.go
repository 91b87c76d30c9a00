package submit

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

// A Request asks for a new run. See engine.Submission for the fields that have no comment.
type Request struct {
	Definition *dsl.Definition
	Workflow   string
	Vars       dsl.Value
	Name, By   string
	StartBy    time.Time
	Priority   *int

	ReplyTo, Correlation string

	Trigger string          // how the run is started; "" = "manual"
	Kind    naming.Trigger  // how the run is started, as a number for the store
	Child   *children.Order // set if a step of another run submits the run; otherwise nil
	From    moving.From     // what the run takes over from the ended run Past; zero = nothing
	Past    *moving.Past
}

// flow returns the workflow of the run; nil = there is none with this name.
func (s *Request) flow() *dsl.Workflow {
	if s.Child != nil {
		return s.Child.Flow
	}
	return s.Definition.Workflow(s.Workflow)
}

// names returns the names of the run. Its unique key is not known yet.
func (s *Request) names() naming.Names {
	names := naming.Names{Workflow: s.Workflow, Name: s.Name, From: s.From.Run, Trigger: s.Kind}
	if s.Child != nil {
		names.Parent, names.Trigger = s.Child.Parent, naming.ByParent
	}
	return names
}

// started returns the event that starts the run.
func (s *Request) started(run status.RunID, st *owner.Start, waits bool) machine.Started {
	ev := machine.Started{
		RunID: run, Name: st.Public, Key: st.Names.Key, Vars: s.Vars, Trigger: "manual", StartedBy: s.By,
		Line: st.Line, Waits: waits && st.Line.Limit > 0 || st.Replaces != nil, StartBy: s.StartBy, From: s.From, ReplyTo: s.ReplyTo, Correlation: s.Correlation,
	}
	if s.Trigger != "" {
		ev.Trigger = s.Trigger
	}
	if o := s.Child; o != nil {
		ev.Trigger, ev.Until, ev.Void = "parent", o.Until, o.Void
		ev.Parent, ev.ParentName, ev.ParentStep = o.Parent, o.ParentName, o.ParentStep
		if !o.Void {
			ev.Signals = o.Call.Signals
		}
	}
	return ev
}

// void reports whether the run must begin no step. Such a run takes no unique key.
func (s *Request) void() bool { return s.Child != nil && s.Child.Void }
