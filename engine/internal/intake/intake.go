// Package intake turns the submissions of other programs into runs.
//
// In: submissions from the role intake.Store. Other programs have written them to the database in
// their own transactions. Out: submitted runs, and refused submissions with a reason. Each
// submission names its run, and a store accepts a name once. So an engine may die after it has
// submitted the run and before it has removed the submission: the next engine finds the run, and
// removes the submission.
package intake

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"slices"
	"sync"
	"time"

	"github.com/saga-engine/engine/dsl"
	"github.com/saga-engine/engine/engine/crypt"
	"github.com/saga-engine/engine/engine/internal/failpoint"
	"github.com/saga-engine/engine/engine/internal/wait"
	"github.com/saga-engine/engine/engine/journal"
	"github.com/saga-engine/engine/engine/store"
	"github.com/saga-engine/engine/engine/store/intake"
)

// passName is the name of the scan for submissions.
const passName = "intake"

const (
	page      = 1000                   // largest number of submissions in one scan
	atOnce    = 100                    // largest number of runs that are submitted at the same time
	leastScan = 100 * time.Millisecond // shortest pause; it follows a scan that has found submissions
)

// Config holds what an Intake needs. All fields except Sealer, Hints and NoWork are required.
type Config struct {
	Store  intake.Store
	Sealer crypt.Sealer
	Logger *slog.Logger
	// Pass reports whether this engine may make the named scan now (store.Passes).
	Pass func(ctx context.Context, name string, period time.Duration) (bool, error)
	// Definition returns the stored definition with a workflow.
	Definition func(ctx context.Context, id store.WorkflowID) (*dsl.Definition, error)
	// Submit submits a run. If a run has the name already and is the run of this submission, Submit
	// returns nil. The result `refused` is true if the submission must not be tried again.
	Submit func(ctx context.Context, r Run) (refused bool, err error)
	// Hints receives a value when there may be submissions. It may be nil.
	Hints <-chan struct{}
	// NoWork reports whether the store has said a short time ago that there are no submissions.
	// When it returns true at the end of a pause, no scan starts, and the next pause begins. A hint
	// ends the pause in any case. If NoWork is nil, each pause ends with a scan.
	NoWork func() bool
	// MaxPause is the longest pause between two scans.
	MaxPause time.Duration
}

// A Run is the run that a submission asks for.
type Run struct {
	Definition *dsl.Definition
	Workflow   string
	Vars       dsl.Value
	Given      []string // names of the variables to which the submission gives a value, ascending
	Name       string   // public id
	By         string
	// ReplyTo says where the replies of the run go. Each reply repeats the text Correlation. "" =
	// none.
	ReplyTo, Correlation string
	// StartBy is the time by which the first step must begin. See also intake.Submission.
	StartBy  time.Time
	Priority *int
}

// An Intake accepts submissions. Only one goroutine may use it.
type Intake struct {
	cfg  Config
	kept map[store.WorkflowID]*dsl.Definition // definitions of the last scan
	// The field `after` is the id of the last submission that the last scan has read. If it is 0,
	// the next scan begins with the first submission.
	after int64
	// The field `left` holds unique keys. For each of them, a submission with this key has stayed
	// in the store, so later submissions with the same key wait, too. The key "" says that a
	// submission whose key is not known has stayed in the store, so all later submissions of its
	// workflow that have a key wait. A scan that begins with the first submission empties `left`.
	left map[uniqueKey]bool
}

// A uniqueKey is a unique key of a workflow.
type uniqueKey struct{ workflow, key string }

// New returns an Intake.
func New(cfg Config) *Intake {
	return &Intake{cfg: cfg, kept: map[store.WorkflowID]*dsl.Definition{}, left: map[uniqueKey]bool{}}
}

// Run accepts submissions until ctx ends. While there are no submissions, the pause between two
// scans doubles each time, up to Config.MaxPause. A hint ends the pause.
func (x *Intake) Run(ctx context.Context) {
	wait.Loop{Least: leastScan, Most: x.cfg.MaxPause, Hints: x.cfg.Hints, NoWork: x.cfg.NoWork, Search: func(ctx context.Context) (int, error) {
		n, err := x.scanDue(ctx)
		return min(n, wait.Some), err
	}, Failed: func(err error) {
		x.cfg.Logger.Warn("accept submissions", "error", err)
	}}.Run(ctx)
}

// scanDue makes one scan if there are submissions and Config.Pass allows it. The result is above 0
// if there were submissions.
func (x *Intake) scanDue(ctx context.Context) (int, error) {
	some, err := x.cfg.Store.Submissions(ctx, 0, 1)
	if err != nil || len(some) == 0 {
		return 0, err
	}
	may, err := x.cfg.Pass(ctx, passName, leastScan)
	if err != nil || !may {
		return len(some), err
	}
	return x.Scan(ctx)
}

// Scan accepts or refuses submissions, at most 1,000, and returns how many there were. If this
// engine cannot decide on a submission now, Scan leaves the submission in the store and works on
// the next one. If there are more than 1,000 submissions, the next Scan continues after the last
// submission of this Scan. So submissions that stay in the store do not hold up later ones.
//
// Submissions with the same unique key become runs one after the other, in the order in which they
// were made. The unique block says whether the first or the newest of them wins. If this engine
// cannot decide on a submission with such a key now, the later submissions with the same key wait,
// too. If this engine could not even read the key of a submission, all later submissions of the
// same workflow wait, except those without a unique key.
func (x *Intake) Scan(ctx context.Context) (int, error) {
	if x.after == 0 {
		clear(x.left)
	}
	list, err := x.cfg.Store.Submissions(ctx, x.after, page)
	if err != nil {
		return 0, err
	}
	if x.after = 0; len(list) == page {
		x.after = list[page-1].ID
	}
	var out results
	var group sync.WaitGroup
	slots := make(chan struct{}, atOnce)
	for _, same := range x.prepareAll(ctx, list, &out) {
		slots <- struct{}{}
		group.Go(func() {
			defer func() { <-slots }()
			x.submit(ctx, same, &out)
		})
	}
	group.Wait()
	for _, key := range out.left {
		x.left[key] = true
	}
	failpoint.Hit("intake.submitted")
	if len(out.accepted) > 0 {
		slices.Sort(out.accepted)
		out.failed(x.cfg.Store.Accept(ctx, out.accepted...))
	}
	failpoint.Hit("intake.accepted")
	return len(list), errors.Join(out.errs...)
}

// A prepared submission is a submission with its run.
type prepared struct {
	id  int64     // id of the submission
	key uniqueKey // key.key is "" if the run has no unique key
	run Run
}

// prepareAll prepares the runs of the submissions, and refuses submissions that can never become
// runs. The result has one list for each unique key, and one for each run without a key.
func (x *Intake) prepareAll(ctx context.Context, list []intake.Submission, out *results) (lists [][]prepared) {
	byKey := map[uniqueKey]int{} // index of the list of each key
	kept := map[store.WorkflowID]*dsl.Definition{}
	for _, s := range list {
		run, why, err := x.prepare(ctx, s)
		if def := x.kept[s.WorkflowID]; def != nil {
			kept[s.WorkflowID] = def
		}
		switch {
		case err != nil:
			out.failed(err)
			x.left[uniqueKey{workflow: s.Workflow}] = true // the key of this submission is not known
			continue
		case why != "":
			out.failed(x.cfg.Store.Refuse(ctx, s.ID, why))
			continue
		}
		at, h := len(lists), uniqueKey{run.Workflow, run.key()}
		if h.key != "" {
			if x.left[h] || x.left[uniqueKey{workflow: run.Workflow}] {
				continue
			}
			if i, ok := byKey[h]; ok {
				at = i
			}
			byKey[h] = at
		}
		if at == len(lists) {
			lists = append(lists, nil)
		}
		lists[at] = append(lists[at], prepared{s.ID, h, run})
	}
	x.kept = kept
	return lists
}

// submit submits the runs one after the other, and refuses submissions that Config.Submit refuses.
// After another error it leaves the remaining submissions in the store.
func (x *Intake) submit(ctx context.Context, same []prepared, out *results) {
	for _, p := range same {
		switch refused, err := x.cfg.Submit(ctx, p.run); {
		case err == nil:
			out.accept(p.id)
		case refused:
			out.failed(x.cfg.Store.Refuse(ctx, p.id, err.Error()))
		default:
			out.failed(err)
			out.leave(p.key)
			return
		}
	}
}

// key returns the unique key of the run. The result is "" if the run has none, or if the key cannot
// be evaluated: Config.Submit then returns the error.
func (r Run) key() string {
	wf := r.Definition.Workflow(r.Workflow)
	if wf.UniqueKey == nil {
		return ""
	}
	key, err := wf.UniqueKey(&dsl.Scope{Run: dsl.RunInfo{ID: r.Name, Workflow: r.Workflow}, Vars: r.Vars})
	if err != nil {
		return ""
	}
	return key
}

// results holds the results of one scan. Several goroutines may use it at the same time.
type results struct {
	mu       sync.Mutex  // protects the fields below
	accepted []int64     // ids of the submissions whose runs are in the store
	left     []uniqueKey // unique keys of the submissions that stay in the store
	errs     []error
}

// accept notes that the run of a submission is in the store.
func (r *results) accept(id int64) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.accepted = append(r.accepted, id)
}

// leave notes that a submission with this key stays in the store.
func (r *results) leave(key uniqueKey) {
	if key.key == "" {
		return
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	r.left = append(r.left, key)
}

// failed notes an error; nil = there was none.
func (r *results) failed(err error) {
	if err == nil {
		return
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	r.errs = append(r.errs, err)
}

// prepare returns the run of a submission. If the submission can never become a run, prepare
// returns the reason in the result `why`. It returns an error if this engine cannot decide that
// now.
func (x *Intake) prepare(ctx context.Context, s intake.Submission) (run Run, why string, err error) {
	if s.WorkflowID == 0 {
		return Run{}, "the workflow is not published any more", nil
	}
	def := x.kept[s.WorkflowID]
	if def == nil {
		if def, err = x.cfg.Definition(ctx, s.WorkflowID); err != nil {
			return Run{}, "", err
		}
		x.kept[s.WorkflowID] = def
	}
	wf := def.Workflow(s.Workflow)
	if wf == nil {
		return Run{}, "the published definition has no such workflow", nil
	}
	var all []dsl.Assignment
	if len(s.Given) > 0 {
		if all, err = journal.DecodeGiven(x.cfg.Sealer, wf, s.Given); err != nil {
			return Run{}, "", err
		}
	}
	input := map[string]json.RawMessage{}
	if err := json.Unmarshal(s.Input, &input); err != nil {
		return Run{}, "the input is no JSON object: " + err.Error(), nil
	}
	given := slices.Sorted(maps.Keys(input))
	for _, name := range given {
		a, err := wf.Assign(name, input[name], "The submission")
		if err != nil {
			return Run{}, err.Error(), nil
		}
		all = append(all, a)
	}
	vars, diags := wf.Bind(all)
	if diags.HasErrors() {
		return Run{}, fmt.Sprint(diags.Err()), nil
	}
	return Run{
		Definition: def, Workflow: s.Workflow, Vars: vars, Given: given, Name: s.Run, By: s.By, ReplyTo: s.ReplyTo, Correlation: s.Correlation,
		StartBy: s.StartBy, Priority: s.Priority,
	}, "", nil
}
