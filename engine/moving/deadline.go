package moving

import (
	"time"

	"github.com/saga-engine/engine/dsl"
	"github.com/saga-engine/engine/engine/internal/model"
)

// A Moment holds the data for a comparison that is not in the state of the run.
type Moment struct {
	At        time.Time      // time of the move; a new deadline must be later than this
	Allowance *dsl.Allowance // limits the cost of the expressions; nil = no limit
	Signals   []model.Signal // early signals that the run keeps
}

// deadline sets the fields Deadline and NewDeadline of the plan. The run keeps its present deadline
// in two cases. In the first case, the old and the new definition give the same deadline. The
// present deadline may still differ from it, because a person may have extended it. In the second
// case, the run has passed its pivot, so its deadline has no effect. In any other case, deadline
// refuses the move if the deadline of the new definition has passed. It also refuses the move if
// the deadline of the old or of the new definition cannot be evaluated.
func (c *comparison) deadline() {
	if c.run.Phase != model.PhaseForward || c.run.Passed || len(c.plan.Refusals) > 0 {
		return
	}
	was, err := c.deadlineOf(c.now, c.run.Vars.V)
	if err == nil {
		c.plan.Deadline, err = c.deadlineOf(c.plan.Flow, c.plan.Vars)
	}
	const next = "give the new definition a longer deadline: it counts from the start of the run"
	if err != nil {
		c.refuse("", next, "the deadline of the new definition cannot be evaluated: %s", err)
		return
	}
	c.plan.NewDeadline = c.plan.Deadline != was
	if at := c.plan.Deadline; c.plan.NewDeadline && at != 0 && at <= model.ToInstant(c.moment.At) {
		c.refuse("", next, "the deadline of the new definition has passed already (%s)", at.Time().UTC().Format(time.RFC3339))
	}
}

// deadlineOf returns the deadline that a workflow gives to the run; 0 = none.
func (c *comparison) deadlineOf(wf *dsl.Workflow, vars dsl.Value) (model.Instant, error) {
	if wf.Deadline == nil {
		return 0, nil
	}
	limit, err := wf.Deadline(&dsl.Scope{
		Run:  dsl.RunInfo{ID: c.run.Name, Workflow: wf.Name, Key: c.run.Key, StartedAt: c.run.Started.Time(), Trigger: c.run.Trigger},
		Vars: vars, Allowance: c.moment.Allowance,
	})
	if err != nil {
		return 0, err
	}
	if at, ok := limit.From(c.run.Started.Time()); ok {
		return model.ToInstant(at), nil
	}
	return 0, nil
}
