package decl

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/hashicorp/hcl/v2"
	"github.com/hashicorp/hcl/v2/hclsyntax"
	"github.com/zclconf/go-cty/cty"
	"github.com/zclconf/go-cty/cty/convert"
	"github.com/zclconf/go-cty/cty/function"

	"github.com/saga-engine/engine/dsl/cron"
	"github.com/saga-engine/engine/dsl/diag"
	"github.com/saga-engine/engine/dsl/internal/eval"
	"github.com/saga-engine/engine/dsl/internal/metered"
	"github.com/saga-engine/engine/dsl/internal/noun"
	"github.com/saga-engine/engine/dsl/internal/report"
	"github.com/saga-engine/engine/dsl/internal/sorted"
	"github.com/saga-engine/engine/dsl/internal/syntax"
	"github.com/saga-engine/engine/dsl/internal/value"
	"github.com/saga-engine/engine/dsl/selection"
)

// A scheduleDecoder reads the schedule blocks of a workflow.
type scheduleDecoder struct{ *decoder }

// schedule reads a schedule block and adds the schedule to w.
func (d scheduleDecoder) schedule(w *Workflow, b *syntax.Block) {
	s := &Schedule{Where: b.DefRange, VariablesAt: b.DefRange, Noun: &noun.Schedule{Schedule: cron.Schedule{Name: b.Label}}}
	for _, other := range w.Schedules {
		if other.Noun.Name == b.Label {
			d.duplicate(b, other.Where)
			break
		}
	}
	w.Schedules = append(w.Schedules, s)
	n := s.Noun
	n.Overlap = cron.Overlap(d.word(b.Attr("overlap"), "overlap", cron.OverlapNames))
	n.CatchUp = cron.CatchUp(d.word(b.Attr("catch_up"), "catch_up", cron.CatchUpNames))
	if n.Overlap == cron.OverlapQueue && n.CatchUp == cron.CatchUpNone {
		d.Errorf(b.Attr("catch_up").Range, "Waiting tick would be lost",
			"With overlap = \"queue\" a tick waits until the run before has ended. catch_up = \"none\" would then drop it as a missed tick. Write catch_up = \"latest\" or \"all\", or overlap = \"skip\".")
	}
	if n.CatchUp == cron.CatchUpAll && skips(b.Attr("overlap")) {
		d.Warnf(b.Attr("catch_up").Range, "Missed ticks can be dropped",
			"Missed ticks start one after the other. With overlap = \"skip\", which is the default, a tick is dropped while the run before is open. Write overlap = \"queue\" to start a run for each missed tick.")
	}
	d.timetable(n, b)
	e := b.Attr("variables")
	if e != nil {
		s.VariablesAt = e.Range
	}
	switch c := b.One("select"); {
	case c != nil:
		n.Select, s.Given, s.Broken = selectDecoder{scheduleDecoder: d, source: "Schedule \"" + b.Label + "\""}.read(c, e)
		if n.Overlap == cron.OverlapCancel && n.Select.Strategy == selection.Window {
			d.Errorf(b.Attr("overlap").Range, "Interval would be lost",
				"With overlap = \"cancel\" a tick cancels the firing of the tick before. strategy = \"window\" does not read its interval again, so the rest of its rows would start no runs. Write overlap = \"queue\" or \"skip\".")
		}
	case e != nil:
		n.Variables, s.Broken = d.scheduleVariables(e, b.Label)
	}
}

// timetable reads the cron expression and the time zone of a schedule. It checks the time zone
// first. So an error of the check that follows can only be about the cron expression, and the
// message names the right argument.
func (d scheduleDecoder) timetable(n *noun.Schedule, b *syntax.Block) {
	if e := b.Attr("time_zone"); e != nil {
		text, ok := d.lit.literalText(e, "time_zone")
		if !ok {
			return
		}
		if _, err := cron.Parse("@daily", text); err != nil {
			d.Errorf(e.Range, "Invalid time zone", "%s.", upperFirst(err.Error()))
			return
		}
		n.Zone = text
	}
	e := b.Attr("cron")
	if e == nil {
		return // the Reader has reported the missing argument
	}
	text, ok := d.lit.literalText(e, "cron")
	if !ok {
		return
	}
	table, err := cron.Parse(text, n.Zone)
	if err != nil {
		d.Errorf(e.Range, "Invalid cron expression", "%s.", upperFirst(err.Error()))
		return
	}
	n.Cron, n.Timetable = text, table
}

// scheduleVariables reads the argument `variables` of a schedule. If the argument has errors,
// scheduleVariables reports them, and the result `broken` is true.
func (d scheduleDecoder) scheduleVariables(e *eval.Expr, schedule string) (list []noun.Assignment, broken bool) {
	if !e.Bad {
		for _, t := range e.Syntax.Variables() {
			if t.RootName() == "row" {
				d.Errorf(t.SourceRange(), "Reference not available here", "row is a row of a select block, and schedule %q has none.", schedule)
				return nil, true
			}
		}
	}
	v, ok := d.lit.constant(e, "The variables of a schedule must be known before a run, so they cannot refer to anything.")
	if !ok {
		return nil, true
	}
	if v.IsNull() || !v.IsKnown() || !v.Type().IsObjectType() && !v.Type().IsMapType() {
		d.Errorf(e.Range, "Invalid value for variables", "variables is an object with a value for each variable: { tenant = \"demo\" }.")
		return nil, true
	}
	values := v.AsValueMap()
	for _, name := range sorted.Keys(values) {
		at := report.Range(e.Range)
		expr := &hclsyntax.LiteralValueExpr{Val: values[name], SrcRange: e.Range}
		a := noun.AssignmentIn(name, at, expr, nil)
		a.Source = "Schedule \"" + schedule + "\""
		list = append(list, a)
	}
	return list, false
}

// word reads the argument e, which must be one of the words. It returns the index of the word. If e
// is missing or invalid, word returns 0, the index of the default. The parameter `name` is the name
// of the argument, for messages.
func (d scheduleDecoder) word(e *eval.Expr, name string, words []string) int {
	if e == nil {
		return 0
	}
	text, ok := d.lit.literalText(e, name)
	if !ok {
		return 0
	}
	if i := slices.Index(words, text); i >= 0 {
		return i
	}
	d.Errorf(e.Range, "Invalid value for "+name, "%s is \"%s\".%s", name, strings.Join(words, "\" or \""), diag.DidYouMean(text, words))
	return 0
}

// skips reports whether the argument `overlap` of a schedule is "skip". If e is nil, the schedule
// has no such argument, and skips returns true, because "skip" is the default. If the argument is
// invalid, skips returns false.
func skips(e *eval.Expr) bool {
	if e == nil {
		return true
	}
	text, ok := eval.LiteralText(e.Syntax)
	return ok && text == cron.OverlapNames[cron.OverlapSkip]
}

// upperFirst returns the text s with a capital first letter. The text must not be empty.
func upperFirst(s string) string { return strings.ToUpper(s[:1]) + s[1:] }

// UsesTick reports whether an expression refers to run.tick, directly or through locals.
func (w *Workflow) UsesTick(e *eval.Expr) bool { return w.usesTick(e, map[string]bool{}) }

func (w *Workflow) usesTick(e *eval.Expr, seen map[string]bool) bool {
	if e == nil || e.Syntax == nil {
		return false
	}
	for _, t := range e.Syntax.Variables() {
		if len(t) < 2 {
			continue
		}
		name := eval.NameOf(t[1])
		switch {
		case t.RootName() == "run" && name == "tick":
			return true
		case t.RootName() == "local" && !seen[name] && w.Locals[name] != nil:
			seen[name] = true
			if w.usesTick(w.Locals[name].Expr, seen) {
				return true
			}
		}
	}
	return false
}

// An eventDecoder reads the on_event blocks of a workflow, and the reset_on blocks of its unique
// block.
type eventDecoder struct{ *decoder }

// resets reads the reset_on blocks of a unique block.
func (d eventDecoder) resets(w *Workflow, unique *syntax.Block) {
	if unique == nil {
		return
	}
	for _, b := range unique.All("reset_on") {
		if w.UniqueRule.Scope != noun.ScopeGoal {
			d.Errorf(b.DefRange, "Reset without a goal", `reset_on frees the key of a goal that was reached, so it needs scope = "goal". Remove the block, or change scope.`)
		}
		d.read(w, b)
	}
}

// read reads an on_event block or a reset_on block and adds it to w. The type of the events is the
// label of the block, or the argument `type` if the block has it.
func (d eventDecoder) read(w *Workflow, b *syntax.Block) {
	e := &OnEvent{Where: b.DefRange, When: b.Attr("when"), Variables: b.Attr("variables"), Key: b.Attr("key"), VariablesAt: b.DefRange, Noun: &noun.OnEvent{Name: b.Label, Type: b.Label}}
	if e.Variables != nil {
		e.VariablesAt = e.Variables.Range
	}
	at := b.DefRange
	if t := b.Attr("type"); t != nil {
		at = t.Range
		text, ok := d.lit.literalText(t, "type")
		if ok && !noun.ValidEventType(text) {
			d.Errorf(at, "Invalid value for type", "%q cannot be the type of an event. A type begins with a letter or a digit, and has at most 200 letters, digits and . _ : / -.", text)
		}
		e.Noun.Type = text
	}
	for _, other := range w.OnEvents {
		if other.Noun.Name == b.Label && (other.Key == nil) == (e.Key == nil) {
			d.duplicate(b, other.Where)
			break
		}
		if other.Noun.Type == e.Noun.Type && e.Noun.Type != "" {
			d.Errorf(at, "Two blocks for one type of event",
				"Block %q has the type %q, too. An event starts one run of a workflow at most, or resets one goal. Write one block, with || in its condition.", other.Noun.Name, e.Noun.Type)
			break
		}
	}
	w.OnEvents = append(w.OnEvents, e)
	e.ForEach = b.Attr("for_each")
	if c := b.One("select"); c != nil {
		d.selects(e, c)
	}
}

// selects reads the select block of an on_event block. The rows of the query give values to the
// variables. So only the argument `when` of the on_event block and the argument `args` of the
// select block can refer to the event.
func (d eventDecoder) selects(e *OnEvent, b *syntax.Block) {
	if e.ForEach != nil {
		d.Errorf(e.ForEach.Range, "Two kinds of lists", "for_each starts a run for each key in the event, and select starts one for each row of a query. Use one of them.")
	}
	e.Args = b.Attr("args")
	own := selectDecoder{scheduleDecoder: scheduleDecoder(d), source: "on_event \"" + e.Noun.Name + "\"", event: true}
	e.Noun.Select, e.Given, e.Broken = own.read(b, e.Variables)
	e.Variables = nil
}

// rowName is the name of a row of a selection in expressions.
const rowName = "row"

// A selectDecoder reads the select block of a schedule or of an on_event block.
type selectDecoder struct {
	scheduleDecoder
	source string // name of the block that contains the select block, for messages
	event  bool   // true = an on_event block contains the select block
}

// read reads a select block. The parameter `variables` is the argument `variables` of the schedule
// or on_event block that contains the select block; nil = that block does not have this argument.
// The result `given` has the names of the variables to which a row gives values. If the argument
// `variables` has errors, read reports them, and the result `broken` is true.
func (d selectDecoder) read(b *syntax.Block, variables *eval.Expr) (n *noun.Selection, given []string, broken bool) {
	n = &noun.Selection{Selection: selection.Selection{
		PageSize: selection.DefaultPageSize, Parallel: 1, MaxKeys: selection.DefaultMaxKeys, Args: map[string]*string{},
	}}
	n.Strategy = selection.Strategy(d.word(b.Attr("strategy"), "strategy", selection.StrategyNames))
	if n.Strategy == selection.Window && d.event {
		d.Errorf(b.Attr("strategy").Range, "Strategy of schedules", "strategy = \"window\" reads the rows between two ticks of a schedule, and an event has no tick before it. Put the bounds into args, such as { since = event.data.since }, or remove strategy.")
	}
	d.whole(b.Attr("page_size"), "page_size", 1, selection.MaxPageSize, &n.PageSize)
	d.whole(b.Attr("max_keys"), "max_keys", 1, selection.MaxMaxKeys, &n.MaxKeys)
	if e := b.Attr("max_keys"); e != nil && n.Strategy != selection.InMemory {
		d.Errorf(e.Range, "Argument without effect", "max_keys is for strategy = \"in_memory\", which reads all keys first. Remove max_keys.")
	}
	d.parallel(b, n)
	d.query(b, n)
	cols := map[string]bool{}
	d.key(b.Attr("key"), n, cols)
	if e := b.Attr("filter"); e != nil {
		if r := d.rowExpr(e, cols); r != nil {
			n.Keep = r.keep
		}
	}
	if variables == nil {
		n.Assign = func([]byte) ([]noun.Assignment, error) { return nil, nil }
	} else {
		given, broken = d.variables(n, variables, cols)
	}
	n.Columns = sorted.Keys(cols)
	return n, given, broken
}

// parallel reads the arguments `parallel` and `stable`. It reports an error if the block asks
// for several pages at the same time, but its other arguments do not allow that.
func (d selectDecoder) parallel(b *syntax.Block, n *noun.Selection) {
	e := b.Attr("parallel")
	d.whole(e, "parallel", 1, selection.MaxParallel, &n.Parallel)
	stable := d.lit.flag(b, "stable", false)
	if n.Parallel == 1 {
		return
	}
	switch filter := b.Attr("filter"); {
	case n.Strategy != selection.Keyset && n.Strategy != selection.Window:
		d.Errorf(e.Range, "Pages cannot run in parallel", "strategy = %q works on one page after the other. Remove parallel, or write strategy = \"keyset\".", n.Strategy)
	case filter != nil:
		d.Errorf(filter.Range, "Filter with parallel pages", "A filter makes pages of different sizes, so pages with a filter run one after the other. Put the condition into sql, or remove parallel.")
	case !stable:
		d.Errorf(e.Range, "Pages cannot run in parallel", "Pages run in parallel only if they are stable: no row is ever deleted, and no key ever changes. If that is true for these rows, write stable = true. If not, remove parallel.")
	}
}

// query reads the arguments `sql` and `args`.
func (d selectDecoder) query(b *syntax.Block, n *noun.Selection) {
	e := b.Attr("sql")
	args := b.Attr("args")
	if d.event {
		d.eventArgs(args, n)
	} else {
		d.args(args, n)
	}
	if e == nil {
		return // the Reader has reported the missing argument
	}
	text, ok := d.lit.literalText(e, "sql")
	if !ok {
		return
	}
	q, err := selection.Parse(text)
	if err != nil {
		d.Errorf(e.Range, "Invalid query", "%s.", upperFirst(err.Error()))
		return
	}
	n.Query = q
	bounded := 0
	for _, name := range q.Params {
		_, given := n.Args[name]
		switch {
		case name == selection.ParamTick:
		case name == selection.ParamFrom || name == selection.ParamTo:
			bounded++
			if n.Strategy != selection.Window {
				d.Errorf(e.Range, "Parameter without a value", "Only strategy = \"window\" gives a value to $from and $to.")
			}
		case !given && (args == nil || !args.Bad):
			d.Errorf(e.Range, "Parameter without a value", "The query uses $%s. Write its value into args: args = { %s = … }.%s", name, name, diag.DidYouMean(name, sorted.Keys(n.Args)))
		}
	}
	if n.Strategy == selection.Window && bounded < 2 {
		d.Errorf(e.Range, "Window without bounds", "strategy = \"window\" covers each interval once, so the query must use both $from and $to: WHERE created_at >= $from AND created_at < $to.")
	}
	for _, name := range sorted.Keys(n.Args) {
		switch {
		case name == selection.ParamTick || name == selection.ParamFrom || name == selection.ParamTo:
			d.Errorf(args.Range, "Reserved parameter", "The firing gives a value to $%s. Choose another name.", name)
		case !slices.Contains(q.Params, name):
			d.Errorf(args.Range, "Value without a parameter", "The query does not use $%s.%s", name, diag.DidYouMean(name, q.Params))
		}
	}
}

// args reads the argument `args`: an object of texts, numbers, bools and nulls.
func (d selectDecoder) args(e *eval.Expr, n *noun.Selection) {
	if e == nil {
		return
	}
	v, ok := d.lit.constant(e, "args must be known before a firing, so they cannot refer to anything. The tick of the firing is $tick in the query.")
	if !ok {
		return
	}
	if v.IsNull() || !v.IsKnown() || !v.Type().IsObjectType() && !v.Type().IsMapType() {
		d.Errorf(e.Range, "Invalid value for args", "args is an object with a value for each parameter: { status = \"open\" }.")
		e.Bad = true
		return
	}
	for name, x := range v.AsValueMap() {
		if x.IsNull() {
			n.Args[name] = nil
			continue
		}
		text, err := convert.Convert(x, cty.String)
		if err != nil || !text.IsKnown() {
			d.Errorf(e.Range, "Invalid value for args", "The value of %s must be a string, a number or a bool. Pass a list as text, such as join(\",\", list), and split it in the query.", name)
			e.Bad = true
			continue
		}
		s := text.AsString()
		n.Args[name] = &s
	}
}

// eventArgs reads the names of the parameters in the argument `args` of an on_event block. It
// sets their values to NULL, because the values are known only when an event comes.
func (d selectDecoder) eventArgs(e *eval.Expr, n *noun.Selection) {
	if e == nil {
		return
	}
	pairs, diags := hcl.ExprMap(e.Syntax)
	for _, p := range pairs {
		name, keyDiags := p.Key.Value(nil)
		if diags = append(diags, keyDiags...); !keyDiags.HasErrors() && name.Type() == cty.String {
			n.Args[name.AsString()] = nil
		}
	}
	if diags.HasErrors() {
		d.Errorf(e.Range, "Invalid value for args", "args is written as an object with a value for each parameter: { day = event.data.day }.")
		e.Bad = true
	}
}

// key reads the argument `key`, which must be a column of the row.
func (d selectDecoder) key(e *eval.Expr, n *noun.Selection, cols map[string]bool) {
	if e == nil || e.Bad {
		return
	}
	name, ok := "", false
	if t := e.Traversal(); len(t) == 2 && t.RootName() == rowName {
		name, ok = column(t)
	}
	if !ok {
		d.Errorf(e.Range, "Invalid key", "key is one column of the row: key = row.id. If several columns identify a row, join them in the query, such as SELECT shop || '/' || number AS id.")
		return
	}
	n.Key = name
	cols[name] = true
}

// column returns the name of the column in a reference row.COLUMN.
func column(t hcl.Traversal) (string, bool) {
	switch step := t[1].(type) {
	case hcl.TraverseAttr:
		return step.Name, true
	case hcl.TraverseIndex:
		if step.Key.Type() == cty.String {
			return step.Key.AsString(), true
		}
	}
	return "", false
}

// A rowExpr is an expression that can refer only to the row of a selection.
type rowExpr struct {
	expr  hclsyntax.Expression
	funcs map[string]function.Function
}

// rowExpr checks that an expression refers only to columns of the row, and adds these columns to
// cols. It returns nil after an error.
func (d selectDecoder) rowExpr(e *eval.Expr, cols map[string]bool) *rowExpr {
	if e.Bad {
		return nil
	}
	for _, t := range e.Syntax.Variables() {
		name, ok := "", false
		if t.RootName() == rowName && len(t) > 1 {
			name, ok = column(t)
		}
		if !ok {
			text := "A schedule with a select block knows only the columns of a row, such as row.id."
			if d.event {
				text = "With a select block, variables and filter know only the columns of a row, such as row.id. args can use event, and a parameter can be a column: SELECT $day AS day."
			}
			d.Errorf(t.SourceRange(), "Reference not available here", "%s", text)
			e.Bad = true
			return nil
		}
		cols[name] = true
	}
	for _, c := range eval.Calls(e.Syntax, "secret") {
		d.Errorf(c.Range(), "secret() not allowed here", "%s", eval.SecretRule)
		e.Bad = true
		return nil
	}
	return &rowExpr{expr: metered.Of(e.Syntax), funcs: d.m.Funcs}
}

// The method `with` evaluates the expression for a row.
func (x *rowExpr) with(row cty.Value) (cty.Value, error) {
	ctx := metered.ConstantContext(x.funcs, nil)
	ctx.Variables[rowName] = row
	v, diags := metered.Evaluate(x.expr, ctx)
	if diags.HasErrors() {
		return cty.NilVal, errors.New(diags.Error())
	}
	return v, nil
}

// of is the method that evaluates the expression for one row. The parameter `row` holds the
// row as JSON.
func (x *rowExpr) of(row []byte) (cty.Value, error) {
	v, err := value.DecodeJSON(row)
	if err != nil {
		return cty.NilVal, fmt.Errorf("read a row: %w", err)
	}
	return x.with(v)
}

// keep does the work of noun.Selection.Keep.
func (x *rowExpr) keep(row []byte) (bool, error) {
	v, err := x.of(row)
	if err != nil {
		return false, err
	}
	v, err = convert.Convert(v, cty.Bool)
	if err != nil || v.IsNull() {
		return false, errors.New("filter is neither true nor false for this row")
	}
	return v.True(), nil
}

// variables reads the argument `variables` next to a select block. The result `given` has the names
// of the variables to which a row gives values. If the argument has errors, the result `broken` is
// true.
func (d selectDecoder) variables(n *noun.Selection, e *eval.Expr, cols map[string]bool) (given []string, broken bool) {
	x := d.rowExpr(e, cols)
	if x == nil {
		return nil, true
	}
	v, err := x.with(cty.DynamicVal)
	switch {
	case err != nil:
		d.Errorf(e.Range, "Invalid value for variables", "%s.", strings.TrimSuffix(err.Error(), "."))
	case v.IsNull() || !v.IsKnown() || !v.Type().IsObjectType():
		d.Errorf(e.Range, "Invalid value for variables", "variables is an object with a value for each variable: { order = row.id }.")
	default:
		n.Assign = x.assign(report.Range(e.Range), d.source)
		return sorted.Keys(v.Type().AttributeTypes()), false
	}
	return nil, true
}

// assign returns the function noun.Selection.Assign.
func (x *rowExpr) assign(at diag.Range, source string) func(row []byte) ([]noun.Assignment, error) {
	return func(row []byte) ([]noun.Assignment, error) {
		v, err := x.of(row)
		if err != nil {
			return nil, err
		}
		if v.IsNull() || !v.IsKnown() || !v.Type().IsObjectType() {
			return nil, errors.New("variables is no object for this row")
		}
		values := v.AsValueMap()
		var list []noun.Assignment
		for _, name := range sorted.Keys(values) {
			a := noun.AssignmentIn(name, at, &hclsyntax.LiteralValueExpr{Val: values[name]}, nil)
			a.Source = source
			list = append(list, a)
		}
		return list, nil
	}
}
