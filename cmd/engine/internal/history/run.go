package history

import (
	"context"
	"strings"

	"github.com/saga-engine/engine/cmd/engine/internal/cli"
	"github.com/saga-engine/engine/cmd/engine/internal/session"
	"github.com/saga-engine/engine/cmd/engine/render"
	"github.com/saga-engine/engine/dsl"
	"github.com/saga-engine/engine/dsl/diag"
	"github.com/saga-engine/engine/engine/journal"
	"github.com/saga-engine/engine/engine/machine"
	"github.com/saga-engine/engine/engine/store"
	"github.com/saga-engine/engine/engine/store/goals"
	"github.com/saga-engine/engine/engine/store/intake"
	"github.com/saga-engine/engine/engine/store/notice"
	"github.com/saga-engine/engine/engine/store/replies"
	"github.com/saga-engine/engine/engine/story"
)

// A Run holds what the store knows about one run. Read fills in the row, the workflow, the
// state and the records. Load fills in the other fields, except Source, Groups and Omitted.
type Run struct {
	Row     store.RunRow
	Flow    *dsl.Workflow
	State   *machine.State
	Records []machine.Record
	Facts   []story.Fact
	Alerts  []store.AlertRow
	Late    []Late
	Inbox   []store.Message
	Resets  []goals.Reset // resets of the goals that the run had reached
	// Notices are the states of the run that notify blocks announce, with their notifications.
	Notices []notice.Sent
	Replies []replies.Reply // replies of the run; nil = it has none, or none was written yet
	// The engine that owns the run; this engine may be dead; nil = not known.
	Owner *store.Member
	// Heir is the name of the run that has taken over the results of this run; "" = none.
	Heir string
	// InLine is the limit under which the run waits for a place; nil = it does not wait for a
	// place.
	InLine *InLine
	// KeyWait is the unique key for which the run waits; nil = it does not wait for its key.
	KeyWait *KeyWait
	// Groups holds the child runs of groups, by the number of the node. Only ReadGroups sets it.
	Groups  map[int]Group
	Refused *intake.Submission // refused submission with the same id as this run; nil = none
	// Omitted is the number of child runs of groups, at any depth, that ReadGroups did not read. It
	// does not count the groups inside of these child runs.
	Omitted int
	Source  map[string][]byte // the files of the definition, by name; only for --definition
}

// Read reads the journal of a run and computes the run's state from it. It reads nothing
// else.
func Read(ctx context.Context, s *session.Session, row store.RunRow) (*Run, error) {
	told, err := journal.Load(ctx, s.Store, s.Sealer, s.Defs, row.Run)
	if err != nil {
		return nil, s.Wrap("read the run", err)
	}
	// A person may have moved the run to another definition.
	row.Digest = told.Flow.Digest
	return &Run{Row: row, Flow: told.Flow, State: told.State, Records: told.Records}, nil
}

// Load reads a run with everything that a Run holds, except Source, Groups and Omitted.
func Load(ctx context.Context, s *session.Session, row store.RunRow) (*Run, error) {
	r, err := Read(ctx, s, row)
	if err != nil {
		return nil, err
	}
	r.Facts = Facts(r.Flow, r.Records)
	if r.Alerts, err = s.Store.Alerts(ctx, row.Run, 20); err != nil {
		return nil, s.Wrap("read alerts", err)
	}
	if r.Late, err = LateReplies(ctx, s, r); err != nil {
		return nil, err
	}
	if r.Inbox, err = s.Store.Messages(ctx, row.Run, 0, MaxInboxShown); err != nil {
		return nil, s.Wrap("read the inbox", err)
	}
	if r.InLine, err = InLineOf(ctx, s, r); err != nil {
		return nil, err
	}
	if r.KeyWait, err = KeyWaitOf(ctx, s, r); err != nil {
		return nil, err
	}
	if r.Notices, err = notices(ctx, s, r); err != nil {
		return nil, err
	}
	if role, ok := goals.Of(s.Store); ok {
		if r.Resets, err = role.Resets(ctx, row.Run); err != nil {
			return nil, s.Wrap("read the resets", err)
		}
	}
	if r.Heir, err = Heir(ctx, s, row.Run); err != nil {
		return nil, err
	}
	if box, ok := replies.Of(s.Store); ok {
		if r.Replies, err = box.OfRun(ctx, row.Run); err != nil {
			return nil, s.Wrap("read the replies", err)
		}
	}
	// The function engine.submit of the database refuses an id that a run has already. But while a
	// submission waits, a run can still take the id of the submission.
	switch x, err := Submission(ctx, s, row.Name); {
	case err != nil:
		return nil, err
	case x != nil && x.Refused != "":
		r.Refused = x
	}
	r.Owner, err = OwnerOf(ctx, s, row)
	return r, err
}

// Facts returns all facts of a run, in order.
func Facts(wf *dsl.Workflow, records []machine.Record) []story.Fact {
	var facts []story.Fact
	fold := machine.NewState()
	for _, rec := range records {
		facts = append(facts, story.Facts(wf, fold, rec)...)
		fold.Apply(rec)
	}
	return facts
}

// MaxInboxShown is the highest number of waiting messages that a command reads.
const MaxInboxShown = 1000

// notices returns the notices of one run, with their notifications.
func notices(ctx context.Context, s *session.Session, r *Run) ([]notice.Sent, error) {
	sent, err := notice.Find(ctx, s.Store, r.Row, func(state string) int { return len(r.Flow.Notifications(state)) })
	if err != nil {
		return nil, s.Wrap("read the notices", err)
	}
	return sent, nil
}

// Knows returns an error if the run has no step with that name. It returns nil if `step` is "".
func (r *Run) Knows(step string) error {
	if step == "" {
		return nil
	}
	var names []string
	for n := range story.Nodes(r.State, r.Flow) {
		names = append(names, n.Name)
		if n.Name == step || n.Step < len(r.Flow.Steps) && r.Flow.Steps[n.Step].Name == step {
			return nil
		}
	}
	const most = 12
	list := ""
	if len(names) <= most {
		list = " It has: " + strings.Join(names, ", ") + "."
	}
	return cli.Failed("Unknown step", "Run %s (%s) has no step %q.%s%s `engine show %s` shows its steps and their states.",
		render.Clean(r.Row.Name), r.Row.State, step, diag.DidYouMean(step, names), render.Clean(list), Arg(r.Row))
}

// Workflow returns the id of the workflow that the run has now. After a person has moved a run,
// this is a workflow of another definition than at the start of the run.
func (r *Run) Workflow() store.WorkflowID {
	if moves := r.State.Run().Moves; len(moves) > 0 {
		return store.WorkflowID(moves[len(moves)-1].Workflow)
	}
	return r.Row.Workflow
}
