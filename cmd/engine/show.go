package main

import (
	"context"
	"fmt"
	"strconv"
	"strings"

	"github.com/spf13/cobra"

	"github.com/saga-engine/engine/cmd/engine/render"
	"github.com/saga-engine/engine/dsl"
	"github.com/saga-engine/engine/engine/machine"
	"github.com/saga-engine/engine/engine/store"
	"github.com/saga-engine/engine/engine/story"
)

// reader shows runs: list, show, explain.
type reader struct{ *app }

type showOptions struct{ events, definition bool }

func showCommand(a *app) *cobra.Command {
	var o showOptions
	cmd := &cobra.Command{
		Use:   "show RUN",
		Short: "Show a run: steps, attempts, keys, limits and undo",
		Long: `Shows a run by its name, or the newest run of a unique key. It reads the run's
journal and disturbs nobody who works on the run.`,
		Args: wants("RUN"),
		RunE: func(cmd *cobra.Command, args []string) error { return a.reader().showRun(cmd.Context(), args[0], o) },
	}
	f := cmd.Flags()
	f.BoolVar(&o.events, "events", false, "everything that happened, in order")
	f.BoolVar(&o.definition, "definition", false, "the source that the run is pinned to")
	return cmd
}

// A shownRun is everything there is to show.
type shownRun struct {
	row     store.RunRow
	wf      *dsl.Workflow
	state   *machine.State
	records []machine.Record
	facts   []story.Fact
	alerts  []store.AlertRow
	late    []late
	inbox   []store.Message
	owner   *store.Member     // nil = no known owner; it may be dead
	source  map[string][]byte // with --definition
}

func (s *shownRun) runTables() runTables { return runTables{s} }

func (a reader) showRun(ctx context.Context, name string, o showOptions) error {
	if o.events && o.definition {
		return failed("Invalid flag", "--events and --definition cannot be combined.")
	}
	s, err := a.opener().openReader(ctx, ".", ".")
	if err != nil {
		return err
	}
	defer s.close()
	row, err := a.follower().findRun(ctx, s, name)
	if err != nil {
		return err
	}
	r, err := s.history().load(ctx, row)
	if err != nil {
		return err
	}
	if o.definition {
		def, err := s.defs.Definition(ctx, r.row.Workflow)
		if err != nil {
			return s.wrap("read the definition", err)
		}
		r.source = def.Sources()
		return a.printSource(r)
	}
	if a.json {
		return a.printJSON(r.json(o.events, a.now))
	}
	if o.events {
		return a.printEvents(r)
	}
	return a.printRun(r)
}

// load reads a run and folds its journal.
func (s history) load(ctx context.Context, row store.RunRow) (*shownRun, error) {
	r, err := s.people().fold(ctx, row)
	if err != nil {
		return nil, err
	}
	r.facts = factsOf(r.wf, r.records)
	if r.alerts, err = s.store.Alerts(ctx, row.Run, 20); err != nil {
		return nil, s.wrap("read alerts", err)
	}
	if r.late, err = s.lateReplies(ctx, r); err != nil {
		return nil, err
	}
	if r.inbox, err = s.store.Messages(ctx, row.Run, 0, maxInboxShown); err != nil {
		return nil, s.wrap("read the inbox", err)
	}
	r.owner, err = s.ownerOf(ctx, row)
	return r, err
}

// factsOf tells the whole story of a run.
func factsOf(wf *dsl.Workflow, records []machine.Record) []story.Fact {
	var facts []story.Fact
	fold := machine.NewState()
	for _, rec := range records {
		facts = append(facts, story.Facts(wf, fold, rec)...)
		fold.Apply(rec)
	}
	return facts
}

func (a reader) printSource(r *shownRun) error {
	if a.json {
		files := map[string]string{}
		for name, src := range r.source {
			files[name] = string(src)
		}
		return a.printJSON(map[string]any{"run": r.row.Name, "definition": r.row.Digest, "files": files})
	}
	for _, name := range sortedNames(r.source) {
		if err := a.print("# %s\n%s\n", render.Clean(name), render.Visible(strings.TrimRight(string(r.source[name]), "\n"))); err != nil {
			return err
		}
	}
	return nil
}

func (a reader) printEvents(r *shownRun) error {
	table := render.Table{Head: []string{"SEQ", "TIME", "EVENT"}}
	for i, f := range r.facts {
		table.Add(strconv.Itoa(i+1), f.At.UTC().Format("2006-01-02 15:04:05.000Z"), render.Sentence(f, -1))
	}
	return table.Write(a.stdout)
}

func (a reader) printRun(r *shownRun) error {
	if err := a.print("%s\n", r.heading()); err != nil {
		return err
	}
	if err := r.runTables().stepTable().Write(a.stdout); err != nil {
		return err
	}
	calls := r.runTables().callTable()
	if calls.Len() > 0 {
		if err := a.print("\n"); err != nil {
			return err
		}
		if err := calls.Write(a.stdout); err != nil {
			return err
		}
	}
	if len(story.Outputs(r.state)) == 0 {
		return nil
	}
	if err := a.print("\n"); err != nil {
		return err
	}
	a.show(render.OutputProblems(story.Outputs(r.state)))
	return a.printOutputs(story.Outputs(r.state))
}

// heading returns the lines above the table of steps: the run itself.
func (r *shownRun) heading() string {
	var b strings.Builder
	fmt.Fprintf(&b, "Run %s  workflow %s  %s\n", render.Clean(r.row.Name), r.row.WorkflowName, statusText(r.row))
	field := func(name, format string, args ...any) {
		fmt.Fprintf(&b, "  %-11s %s\n", name, render.Clean(fmt.Sprintf(format, args...)))
	}
	if r.row.Key != "" {
		field("Key", "%s", r.row.Key)
	}
	field("Definition", "%.12s", r.row.Digest)
	field("Created", "%s by %s", stamp(r.state.Run().Started.Time()), r.state.Run().StartedBy)
	if !r.state.Status().Final() {
		field("Owner", "%s", r.runTables().ownerText())
	}
	if d := r.state.Run().Deadline.Time(); !d.IsZero() && !r.state.Status().Final() {
		field("Deadline", "%s", stamp(d))
	}
	if d := r.state.Run().UndoDeadline.Time(); !d.IsZero() && !r.state.Status().Final() {
		field("Undo by", "%s", stamp(d))
	}
	if f := r.state.Run().Finished.Time(); !f.IsZero() {
		field("Finished", "%s, after %s", stamp(f), render.Took(f.Sub(r.state.Run().Started.Time())))
	}
	if f := r.state.Failure(); f != (dsl.Failure{}) {
		field("Failure", "%s", strings.TrimPrefix(join(": ", f.Step, f.Code, f.Message), ": "))
		field("Undone", "%d, %d left as is, %d not undone by declaration", int(r.state.Run().Undone), int(r.state.Run().Left), int(r.state.Run().Undeclared))
		if kept := story.KeptByDeclaration(r.state, r.wf); len(kept) > 0 {
			field("Kept", "%s: compensation = \"none\"", render.KeptText(kept))
		}
	}
	failures, blocked := story.UndoFailures(r.state, r.wf)
	for _, f := range failures {
		field("Undo failed", "%s", join(": ", f.Step, f.Code, f.Message))
	}
	if blocked > 0 {
		field("Blocked", "%s not undone, because the undo of a later step failed", render.Count(blocked, "effect"))
	}
	if held := r.state.Held(); len(held) > 0 && !r.state.Status().Final() {
		for _, h := range held {
			field("Waits for", "%s", heldText(h))
		}
	}
	for _, line := range variableLines(r.state.Vars()) {
		field("Variable", "%s", line)
	}
	for _, line := range r.runTables().inboxLines() {
		field("Waiting", "%s", line)
	}
	for _, l := range r.late {
		field("Late", "%s", l.text())
	}
	for _, al := range r.alerts {
		field("Alert", "%s %s", stamp(al.At), join(": ", al.Kind, al.Step, al.Code, al.Message))
	}
	return b.String()
}
