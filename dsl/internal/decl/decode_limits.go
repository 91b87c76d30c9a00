package decl

import (
	"strings"
	"time"

	"github.com/saga-engine/engine/dsl/diag"
	"github.com/saga-engine/engine/dsl/internal/eval"
	"github.com/saga-engine/engine/dsl/internal/noun"
	"github.com/saga-engine/engine/dsl/internal/syntax"
)

// leastRetention is the smallest value of the argument `retention`. A client that waits for the end
// of a run must have time to read the run.
const leastRetention = time.Minute

// readRetention reads the argument `retention` of a workflow into w.Retention. The retention is the
// same for all runs of a definition, so the argument must not refer to anything.
func readRetention(d *decoder, b *syntax.Block, w *Workflow) {
	e := b.Attr("retention")
	d.span(e, "retention", &w.Retention)
	if w.Retention > 0 && w.Retention < leastRetention {
		d.Errorf(e.Range, "Invalid value for retention", "A run is kept for at least 1m after its end, so that clients can read its result.")
	}
}

// maxRetain is the largest value of the argument `retain`: 100 years.
const maxRetain = 100 * 365 * 24 * time.Hour

// readUnique reads the arguments of a unique block, except for its key, into w.UniqueRule. The
// block may be nil.
func readUnique(d *decoder, b *syntax.Block, w *Workflow) {
	scopes := map[string]noun.Scope{"active": noun.ScopeActive, "goal": noun.ScopeGoal, "ever": noun.ScopeEver}
	u := &w.UniqueRule
	if e := b.Attr("scope"); e != nil {
		if text, ok := d.lit.literalText(e, "scope"); ok {
			if u.Scope, ok = scopes[text]; !ok {
				d.Errorf(e.Range, "Invalid value for scope",
					`scope is "active" (one open run for each key), "goal" (no other run after one has succeeded), or "ever" (one run for each key, for ever).%s`,
					diag.DidYouMean(text, []string{"active", "goal", "ever"}))
			}
		}
	}
	if e := b.Attr("on_conflict"); e != nil {
		if text, ok := d.lit.literalText(e, "on_conflict"); ok {
			u.Reject, u.Replace = text == "reject", text == "replace"
			switch {
			case u.Replace && u.Scope == noun.ScopeEver:
				d.Errorf(e.Range, "Replace with one run for ever", `With scope = "ever" no other run of a key can ever start, so a new run cannot replace the old one. Write on_conflict = "attach" or "reject", or change scope.`)
			case text != "attach" && !u.Reject && !u.Replace:
				d.Errorf(e.Range, "Invalid value for on_conflict",
					`on_conflict is "attach" (the submission returns the run that holds the key), "reject" (the submission is refused), or "replace" (the run that holds the key is cancelled, and the new run starts when the key is free).%s`,
					diag.DidYouMean(text, []string{"attach", "reject", "replace"}))
			}
		}
	}
	e := b.Attr("retain")
	d.span(e, "retain", &u.Retain)
	switch {
	case u.Retain == 0:
	case u.Scope != noun.ScopeGoal:
		d.Errorf(e.Range, "Retain without a goal", `retain says how long a goal that is reached is kept, so it needs scope = "goal". Remove retain, or change scope.`)
	case u.Retain > maxRetain || u.Retain < time.Second || u.Retain%time.Microsecond != 0:
		d.Errorf(e.Range, "Invalid value for retain", "A goal is kept for 1s to 876000h (100 years). Without retain it is kept until a person resets it.")
	}
}

// rejectsWhenFull reports whether a concurrency block says when_full = "reject". The block may be
// nil.
func (d literalDecoder) rejectsWhenFull(b *syntax.Block) bool {
	e := b.Attr("when_full")
	if e == nil {
		return false
	}
	switch text, ok := d.literalText(e, "when_full"); {
	case !ok || text == "queue":
	case text == "reject":
		return true
	default:
		d.Errorf(e.Range, "Invalid value for when_full",
			`when_full is "queue", so that the run waits until there is room, or "reject", so that the submission is refused or the group fails.%s`,
			diag.DidYouMean(text, []string{"queue", "reject"}))
	}
	return false
}

// An admitDecoder reads the admit blocks of a workflow.
type admitDecoder struct{ *decoder }

// read reads an admit block and adds it to w.Admits.
func (d admitDecoder) read(w *Workflow, b *syntax.Block) {
	a := &Admit{Name: b.Label, Where: b.DefRange, Args: b.Attr("args"), Message: b.Attr("error_message"), Lock: noun.AdmitLocks[0]}
	for _, other := range w.Admits {
		if other.Name == b.Label {
			d.duplicate(b, other.Where)
			break
		}
	}
	w.Admits = append(w.Admits, a)
	if e := b.Attr("lock"); e != nil {
		a.Lock = noun.AdmitLocks[scheduleDecoder(d).word(e, "lock", noun.AdmitLocks)]
	}
	if e := b.Attr("sql"); e != nil {
		a.SQLAt = e.Range
		a.SQL = d.statement(e, "sql", "SELECT")
	}
	e := b.Attr("bump")
	if e != nil {
		a.Bump = d.statement(e, "bump", "UPDATE")
	}
	switch versioned := a.Lock == "version"; {
	case a.Bump != "" && !versioned:
		d.Errorf(e.Range, "Argument without use", "bump changes the version of the checked rows, so it needs lock = \"version\".")
	case e == nil && versioned:
		d.Errorf(b.DefRange, "Missing required argument", "lock = \"version\" needs the argument bump: an UPDATE that changes the version of the checked rows, such as \"UPDATE public.orders SET version = version + 1 WHERE id = $1\".")
	}
}

// statement reads the text of an SQL statement. The statement must begin with the SQL keyword in
// the parameter `verb`, or with WITH. After an error, the method returns "".
func (d admitDecoder) statement(e *eval.Expr, name, verb string) string {
	if !e.Bad && len(e.Syntax.Variables()) > 0 {
		d.Errorf(e.Range, "Text inserted into SQL",
			"%s is a literal text, so that no value can change the statement. Write $1, $2 and so on in the statement, and the values in args = [ ... ].", name)
		e.Bad = true
		return ""
	}
	text, ok := d.lit.literalText(e, name)
	if !ok {
		return ""
	}
	text = strings.TrimSpace(text)
	first, _, _ := strings.Cut(strings.ToUpper(text), " ")
	if fields := strings.Fields(first); len(fields) > 0 {
		first = fields[0]
	}
	switch {
	case first != verb && first != "WITH":
		d.Errorf(e.Range, "Invalid value for "+name, "%s is one %s statement, and this text begins with %q.", name, verb, first)
	case strings.HasSuffix(text, ";"):
		d.Errorf(e.Range, "Invalid value for "+name, "%s is one statement without a semicolon: the engine adds the locking clause at its end.", name)
	default:
		return text
	}
	return ""
}
