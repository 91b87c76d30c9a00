package restart

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"strings"

	"github.com/saga-engine/engine/cmd/engine/internal/cli"
	"github.com/saga-engine/engine/cmd/engine/internal/engines"
	"github.com/saga-engine/engine/cmd/engine/internal/history"
	"github.com/saga-engine/engine/cmd/engine/internal/module"
	"github.com/saga-engine/engine/cmd/engine/internal/session"
	"github.com/saga-engine/engine/cmd/engine/internal/verbs"
	"github.com/saga-engine/engine/cmd/engine/internal/words"
	"github.com/saga-engine/engine/cmd/engine/render"
	"github.com/saga-engine/engine/dsl"
	"github.com/saga-engine/engine/engine"
	"github.com/saga-engine/engine/engine/moving"
	"github.com/saga-engine/engine/engine/refusal"
	"github.com/saga-engine/engine/engine/store"
	"github.com/saga-engine/engine/engine/store/naming"
)

// Options are the flags of `engine restart`.
type Options struct {
	From, To, RunID, Reason string
	Again, Yes, DryRun      bool
	Agents                  module.AgentFlags
}

// Check returns an error if flags are missing or exclude each other.
func (o Options) Check() error {
	switch {
	case o.From == "":
		return cli.Failed("Missing flag", "Say with --from STEP from which step the new run starts.")
	case o.Yes && o.DryRun:
		return cli.Failed("Invalid flag", "--yes and --dry-run exclude each other.")
	}
	return verbs.CheckReason(o.Reason, "")
}

// Run starts a new run from the results of an ended run. It shows first what the new run takes
// over, except with --json and --yes. Without --yes it asks the person first. With --dry-run, or
// with --json and without --yes, it starts no run.
func Run(ctx context.Context, a *cli.App, run string, o Options) error {
	var next *module.Linked
	if o.To != "" {
		var err error
		if next, err = module.Link(ctx, a, o.To, o.Agents); err != nil {
			return err
		}
	}
	s, err := session.OpenSpeaker(ctx, a)
	if err != nil {
		return err
	}
	defer s.Close()
	if err := s.RightKey(ctx); err != nil {
		return err
	}
	row, err := history.Find(ctx, a, s, run)
	if err != nil {
		return err
	}
	r, err := history.Read(ctx, s, row)
	if err != nil {
		return err
	}
	def, err := definition(ctx, s, r, next)
	if err != nil {
		return err
	}
	w := work{a: a, s: s, r: r, o: o}
	past := &moving.Past{Run: r.State.Run(), Nodes: r.State.Nodes(), Flow: r.Flow}
	w.plan = past.Succession(def.Workflow(r.Flow.Name), moving.From{Run: row.Run, Step: o.From, Again: o.Again})
	if err := w.ofParent(ctx); err != nil {
		return err
	}
	if err := w.inherited(ctx); err != nil {
		return err
	}
	return w.record(ctx, def)
}

// definition returns the definition of the new run. This is the definition that --to names or,
// without --to, the last definition of the ended run.
func definition(ctx context.Context, s *session.Session, r *history.Run, next *module.Linked) (*dsl.Definition, error) {
	if next == nil {
		def, err := s.Defs.Definition(ctx, r.Workflow())
		if err != nil {
			return nil, s.Wrap("read the definition of the run", err)
		}
		return def, nil
	}
	_, err := module.Choose(next.Def, r.Flow.Name)
	return next.Def, err
}

// A work holds the data of one execution of the command.
type work struct {
	a    *cli.App
	s    *session.Session
	r    *history.Run
	o    Options
	plan moving.Succession
}

// ofParent sets the refusal of the plan if the run is a child run: only the outermost run can be
// restarted, and the refusal names it.
func (w *work) ofParent(ctx context.Context) error {
	k, err := history.KinOf(ctx, w.s, w.r)
	if err != nil || k == nil {
		return err
	}
	why := moving.Refusal{
		Reason: "it is " + k.What,
		Next:   fmt.Sprintf("`engine restart %s --from STEP` starts a new run from the results of run %s", history.Arg(k.Top), render.Clean(k.Top.Name)),
	}
	if !k.Top.State.Final() {
		why.Next += ", when that run has ended"
	}
	if !w.r.Row.State.Final() {
		why.Reason += ", and has not ended"
		why.Next = fmt.Sprintf("`engine explain %s` shows what it accepts now; %s", history.Arg(w.r.Row), why.Next)
	}
	w.plan = moving.Succession{Refusals: []moving.Refusal{why}}
	return nil
}

// inherited adds a refusal to the plan if the ended run already has an heir. If --run-id names this
// heir, there is no refusal: the person may have repeated the command.
func (w *work) inherited(ctx context.Context) error {
	heir, err := history.Heir(ctx, w.s, w.r.Row.Run)
	if err != nil || heir == "" || heir == w.o.RunID {
		return err
	}
	w.plan.Refusals = append(w.plan.Refusals, heirRefusal(heir))
	return nil
}

func heirRefusal(heir string) moving.Refusal {
	return moving.Refusal{
		Reason: fmt.Sprintf("run %s has taken over its results already", render.Clean(heir)),
		Next:   fmt.Sprintf("`engine restart %s --from STEP` starts from there, when that run has ended", words.Quote(render.Clean(heir))),
	}
}

// record shows the plan, asks, and records the new run.
func (w *work) record(ctx context.Context, def *dsl.Definition) error {
	if err := w.preview(ctx, def); err != nil {
		return err
	}
	if w.a.JSON && !w.o.Yes {
		return w.planJSON()
	}
	// The table promises what the new run does, so it is not printed if there will be no new run.
	if !w.a.JSON && len(w.plan.Refusals) == 0 {
		if err := w.write(); err != nil {
			return err
		}
	}
	switch {
	case len(w.plan.Refusals) > 0:
		return w.refused(w.plan.Refusals)
	case w.o.DryRun:
		w.a.Note("Nothing was changed. Without --dry-run the command asks, and then starts the new run.")
		return nil
	}
	if !w.o.Yes {
		if err := ask(w.a); err != nil {
			return err
		}
	}
	sub, err := engine.Restart(ctx, engines.Visitor(w.a, w.s, engine.Options{}), w.restarting(def))
	if err != nil {
		return w.problem(ctx, sub, err)
	}
	if sub.Exists {
		if err := w.mine(ctx, def, sub); err != nil {
			return err
		}
	}
	return w.recorded(ctx, sub)
}

// restarting returns the request to the engine: which run to restart, from which step, and how.
func (w *work) restarting(def *dsl.Definition) engine.Restarting {
	return engine.Restarting{
		Definition: def, Run: w.r.Row.Run, Step: w.o.From, Again: w.o.Again, Name: w.o.RunID, By: verbs.Person(), Reason: w.o.Reason,
	}
}

// preview adds a refusal to the plan if the engine would not accept the new run now: for example,
// another run has its name, the limit of the workflow is full, or the unique key cannot be
// evaluated. With --yes, preview does nothing, because then the engine itself refuses the run.
func (w *work) preview(ctx context.Context, def *dsl.Definition) error {
	if w.o.Yes || len(w.plan.Refusals) > 0 {
		return nil
	}
	// If the ended run has an heir here, the user has repeated the command: --run-id names this
	// heir.
	if heir, err := history.Heir(ctx, w.s, w.r.Row.Run); err != nil || heir != "" {
		return err
	}
	if taken, err := w.nameTaken(ctx); err != nil || taken {
		return err
	}
	err := engine.CheckRestart(ctx, engines.Visitor(w.a, w.s, engine.Options{}), w.restarting(def))
	var held *refusal.KeyError
	switch {
	case errors.As(err, &held):
		w.plan.Refusals = append(w.plan.Refusals, keyRefusal(held))
	case err != nil:
		w.plan.Refusals = append(w.plan.Refusals, moving.Refusal{Reason: "the new run would be refused: " + err.Error()})
	}
	return nil
}

// keyRefusal returns the reason that another run holds the unique key of the new run.
func keyRefusal(held *refusal.KeyError) moving.Refusal {
	return moving.Refusal{Reason: "the new run needs its unique key: " + held.Error()}
}

// nameTaken reports whether a run with the name in --run-id exists. If it does, nameTaken adds a
// refusal to the plan. The caller has checked that this run is not the heir of the ended run.
func (w *work) nameTaken(ctx context.Context) (bool, error) {
	if w.o.RunID == "" {
		return false, nil
	}
	row, err := w.s.Store.Find(ctx, w.o.RunID)
	switch {
	case errors.Is(err, store.ErrNotFound):
		return false, nil
	case err != nil:
		return false, w.s.Wrap("find the run", err)
	}
	w.plan.Refusals = append(w.plan.Refusals, moving.Refusal{
		Reason: fmt.Sprintf("run %s exists already, and has not taken over the results of run %s", render.Clean(row.Name), render.Clean(w.r.Row.Name)),
		Next:   "give the new run another name with --run-id",
	})
	return true, nil
}

// ask asks the person whether to start the new run. It returns an error unless the answer is "yes".
func ask(a *cli.App) error {
	if err := a.Print("Start the new run? Only \"yes\" goes on: "); err != nil {
		return err
	}
	answer, err := bufio.NewReader(a.Stdin).ReadString('\n')
	if strings.TrimSpace(answer) != "yes" {
		return cli.Failed("Not confirmed", "No run was started. With --yes the command does not ask.")
	}
	if err != nil && !errors.Is(err, io.EOF) { // the last line may have no line break
		return fmt.Errorf("read the answer: %w", err)
	}
	return nil
}

// problem returns the error for people after a restart that the engine refused, or whose outcome is
// not known.
func (w *work) problem(ctx context.Context, sub store.Submitted, err error) error {
	var (
		heir    *naming.HeirError
		refused *engine.RestartError
		held    *refusal.KeyError
	)
	switch {
	case errors.As(err, &heir):
		name, lost := history.NameOf(ctx, w.s, heir.Heir)
		if lost != nil {
			return lost
		}
		return w.refused([]moving.Refusal{heirRefusal(name)})
	case errors.As(err, &refused):
		return w.refused(refused.Refusals)
	case errors.As(err, &held):
		return w.refused([]moving.Refusal{keyRefusal(held)})
	case errors.Is(err, naming.ErrNoOrigin):
		return cli.Failed("Run cannot be restarted", "Run %s was removed meanwhile. `engine apply` starts a new run.", render.Clean(w.r.Row.Name))
	case sub.Run != 0:
		return &cli.UnsureError{Run: sub.Name, Show: "engine show " + words.Quote(sub.Name), Safe: true, State: w.s.Shown, Err: err}
	}
	return w.s.Wrap("record the run", err)
}

// mine is called if a run with the name or the unique key of the new run exists already. It returns
// nil if this run is the heir of the ended run: an earlier restart has recorded it. In all other
// cases mine returns an error. If the other run holds the unique key, this is the error that
// --dry-run shows.
func (w *work) mine(ctx context.Context, def *dsl.Definition, sub store.Submitted) error {
	heir, err := history.Heir(ctx, w.s, w.r.Row.Run)
	if err != nil {
		return err
	}
	if heir == sub.Name {
		return nil
	}
	var held *refusal.KeyError
	if sub.Name != w.o.RunID && errors.As(engine.CheckRestart(ctx, engines.Visitor(w.a, w.s, engine.Options{}), w.restarting(def)), &held) {
		return w.refused([]moving.Refusal{keyRefusal(held)})
	}
	return cli.Failed("Run exists", "Run %s has this name or the unique key, and has not taken over the results of run %s. `engine show %s` shows that run; give the new run another name with --run-id.",
		render.Clean(sub.Name), render.Clean(w.r.Row.Name), words.Quote(render.Clean(sub.Name)))
}

// recorded says which run was recorded. It warns if no engine works on the state.
func (w *work) recorded(ctx context.Context, sub store.Submitted) error {
	live := -1
	if members, err := w.s.Store.Live(ctx); err == nil {
		live = len(members)
	} else { // not fatal: the run is recorded already
		w.a.Note("Warning: it is not known whether an engine works on this state: %s", w.s.Wrap("look for engines", err))
	}
	if w.a.JSON {
		m := w.result()
		m["new_run"], m["exists"], m["dry_run"] = sub.Name, sub.Exists, false
		if live >= 0 {
			m["live_engines"] = live
		}
		return w.a.PrintJSON(m)
	}
	if sub.Exists {
		w.a.Note("Run %s exists already: an earlier restart of run %s has recorded it.", sub.Name, render.Clean(w.r.Row.Name))
	} else {
		w.a.Note("Run %s takes over %s of run %s.", sub.Name, render.Count(w.taken(), "result"), render.Clean(w.r.Row.Name))
	}
	if live == 0 {
		w.a.Note("No engine works on this state now, so the run waits. `engine apply PATH --run-id %s` or `engine serve PATH` works on it.", words.Quote(sub.Name))
	}
	return w.a.Print("%s\n", sub.Name)
}

func (w *work) taken() int {
	n := 0
	for _, h := range w.plan.Steps {
		if h.Taken {
			n++
		}
	}
	return n
}

// refused returns the error that the run cannot be restarted, with all reasons. If no reason names
// a command, the text ends with a sentence that names a command.
func (w *work) refused(all []moving.Refusal) error {
	var lines []string
	for _, why := range all {
		lines = append(lines, "- "+render.Clean(why.String())+".")
	}
	text := strings.Join(lines, "\n")
	if !strings.Contains(text, "`engine ") {
		text += fmt.Sprintf("\n`engine show %s` shows its steps and their effects.", history.Arg(w.r.Row))
	}
	return cli.Failed("Run cannot be restarted", "No run was started from run %s:\n%s", render.Clean(w.r.Row.Name), text)
}
