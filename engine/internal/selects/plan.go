package selects

import (
	"encoding/json"
	"fmt"
	"slices"
	"time"

	"github.com/saga-engine/engine/dsl"
	"github.com/saga-engine/engine/dsl/cron"
	"github.com/saga-engine/engine/dsl/selection"
	"github.com/saga-engine/engine/engine/crypt"
	"github.com/saga-engine/engine/engine/internal/inbox"
	"github.com/saga-engine/engine/engine/journal"
	"github.com/saga-engine/engine/engine/store/firings"
)

// maxKey is the largest size of a key, in bytes.
const maxKey = 1000

// A plan is a firing with everything that its runs need.
type plan struct {
	f   *firings.Firing
	def *dsl.Definition
	wf  *dsl.Workflow
	sel *selection.Selection
	// The function `assign` returns the values that a row gives to variables. The function `keep`
	// is the filter: it reports whether a row starts a run; nil = every row does.
	assign func(row []byte) ([]dsl.Assignment, error)
	keep   func(row []byte) (bool, error)
	// trigger is the text that the history of the runs stores about their start.
	trigger string
	given   []dsl.Assignment // values of the deployment variables
	query   firings.Query
}

// planOf returns the plan of a firing. The parameter `def` is the definition with which the firing
// began.
func planOf(def *dsl.Definition, f *firings.Firing, sealer crypt.Sealer) (*plan, error) {
	p := &plan{f: f, def: def, wf: def.Workflow(f.Workflow)}
	if p.wf == nil {
		return nil, fmt.Errorf("the definition of the firing has no workflow %q", f.Workflow)
	}
	if p.block(); p.sel == nil {
		return nil, fmt.Errorf("the definition of the firing has no selection in block %q", f.Schedule)
	}
	var err error
	if p.given, err = journal.DecodeGiven(sealer, p.wf, f.Given); err != nil {
		return nil, err
	}
	p.query, err = QueryOf(p.sel, f)
	return p, err
}

// block finds the select block of the firing. It sets the fields `sel`, `assign`, `keep` and
// `trigger`, if there is one.
func (p *plan) block() {
	if p.f.Event != "" {
		for _, on := range p.wf.OnEvents {
			if on.Name == p.f.Schedule && on.Select != nil {
				p.trigger = inbox.Trigger(on.Type, p.f.Event)
				p.sel, p.assign, p.keep = &on.Select.Selection, on.Select.Assign, on.Select.Keep
			}
		}
		return
	}
	for _, s := range p.wf.Schedules {
		if s.Name == p.f.Schedule && s.Select != nil {
			p.trigger = cron.Trigger(p.f.Schedule, p.f.Tick)
			p.sel, p.assign, p.keep = &s.Select.Selection, s.Select.Assign, s.Select.Keep
		}
	}
}

// QueryOf returns the query of a selection for the firing `f`. If f is nil, the query belongs to no
// firing. A parameter of the query is NULL if neither the definition nor the firing gives a value
// to it.
func QueryOf(s *selection.Selection, f *firings.Firing) (firings.Query, error) {
	q := firings.Query{Text: s.Query.Text, Key: s.Key, PageSize: s.PageSize, Parallel: s.Parallel, Repeats: s.Strategy.Repeats(), Lock: s.Strategy == selection.Locked}
	var own map[string]*string
	if f != nil && len(f.Args) > 0 {
		if err := json.Unmarshal(f.Args, &own); err != nil {
			return q, fmt.Errorf("read the arguments of the firing: %w", err)
		}
	}
	for _, name := range s.Query.Params {
		v := s.Args[name]
		if given, ok := own[name]; ok {
			v = given
		}
		if f != nil {
			switch name {
			case selection.ParamTick:
				v = timeText(f.Tick)
			case selection.ParamFrom:
				v = timeText(f.From)
			case selection.ParamTo:
				v = timeText(f.To)
			}
		}
		q.Args = append(q.Args, v)
	}
	return q, nil
}

func timeText(t time.Time) *string {
	s := t.UTC().Format(time.RFC3339Nano)
	return &s
}

// A Run is a run that a row starts.
type Run struct {
	Definition *dsl.Definition
	Workflow   string
	Vars       dsl.Value
	Name       string // public id, from RunName
	Trigger    string // from cron.Trigger or inbox.Trigger
	By         string
}

// run returns the run of a row. The result `keep` is false if the filter leaves the row out. An
// error says why the row can start no run.
func (p *plan) run(r firings.Row) (run Run, keep bool, err error) {
	switch {
	case r.Copies > 1:
		return Run{}, true, fmt.Errorf("%d rows have the key %q: column %s is not unique", r.Copies, short(r.Key), p.sel.Key)
	case r.Key == "":
		return Run{}, true, fmt.Errorf("the key is an empty text: column %s", p.sel.Key)
	case len(r.Key) > maxKey:
		return Run{}, true, fmt.Errorf("the key has %d bytes, more than the %d allowed: column %s", len(r.Key), maxKey, p.sel.Key)
	}
	if p.keep != nil {
		if keep, err := p.keep(r.Data); err != nil || !keep {
			return Run{}, keep || err != nil, err
		}
	}
	own, err := p.assign(r.Data)
	if err != nil {
		return Run{}, true, err
	}
	vars, diags := p.wf.Bind(append(slices.Clone(p.given), own...))
	if diags.HasErrors() {
		return Run{}, true, fmt.Errorf("variables: %w", diags.Err())
	}
	return Run{
		Definition: p.def, Workflow: p.wf.Name, Vars: vars, By: p.f.By,
		Name: runName(p.f, r.Key), Trigger: p.trigger,
	}, true, nil
}

// short returns the beginning of a text, for messages.
func short(s string) string {
	if len(s) > 100 {
		return s[:100] + "…"
	}
	return s
}
