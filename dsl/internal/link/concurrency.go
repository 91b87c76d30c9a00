package link

import (
	"errors"
	"strconv"

	"github.com/zclconf/go-cty/cty"

	"github.com/saga-engine/engine/dsl/internal/noun"
	"github.com/saga-engine/engine/dsl/internal/value"
)

// priorityOf converts a value to the priority of a run or of a step.
func priorityOf(v cty.Value) (int, error) {
	if v.ContainsMarked() {
		return 0, errors.New("a priority is shown, so it cannot be computed from a sensitive value")
	}
	return value.WholeNumber(v, noun.MinPriority, noun.MaxPriority)
}

// limitNumberOf converts a value to the limit of a concurrency block.
func limitNumberOf(v cty.Value) (int, error) {
	if v.ContainsMarked() {
		return 0, errors.New("a limit is shown, so it cannot be computed from a sensitive value")
	}
	return value.WholeNumber(v, 1, noun.MaxConcurrency)
}

// concurrencyOf links the concurrency block of the workflow. It returns nil if there is none.
func concurrencyOf(l *workflowLinker) *noun.Concurrency {
	b := l.decl.Concurrency
	if b == nil {
		return nil
	}
	c := &noun.Concurrency{Reject: l.decl.RejectsWhenFull}
	c.Limit = exprFunc(l, b.Attr("limit"), "concurrency.limit", cty.Number, limitNumberOf)
	if e := b.Attr("key"); e != nil {
		if l.check(e).ContainsMarked() {
			l.Errorf(e.Range, "Sensitive value in key", "concurrency.key is stored in clear and shown, so it cannot hold a sensitive value.")
		}
		c.Key = exprFunc(l, e, "concurrency.key", cty.String, keyOf)
	}
	return c
}

// admitsOf links the admit blocks of the workflow.
func admitsOf(l *workflowLinker) []*noun.Admit {
	var out []*noun.Admit
	for _, a := range l.decl.Admits {
		n := &noun.Admit{Name: a.Name, SQL: a.SQL, Bump: a.Bump, Lock: a.Lock, Params: noun.Parameters(a.SQL), BumpParams: noun.Parameters(a.Bump)}
		given := 0
		if a.Args != nil {
			v := l.check(a.Args)
			raw, _ := v.UnmarkDeep()
			if v.ContainsMarked() {
				l.Errorf(a.Args.Range, "Sensitive value in args", "The database may write the parameters of a statement into its log, so args cannot hold a sensitive value.")
			}
			given = -1 // the number of values is not known before a run
			switch t := raw.Type(); {
			case t.IsTupleType():
				given = t.Length()
			case t != cty.DynamicPseudoType && !t.IsListType() && !raw.IsKnown():
				l.Invalid(a.Args.Range, "args", errParameters)
			}
			n.Args = exprFunc(l, a.Args, "args", cty.DynamicPseudoType, parametersOf)
		}
		if uses := max(n.Params, n.BumpParams); given >= 0 && a.SQL != "" && uses != given {
			l.Errorf(a.SQLAt, "Wrong number of parameters", "The statement uses %s, and args has %s. Write one value in args for each of $1, $2 and so on.",
				plural(uses, "parameter"), plural(given, "value"))
		}
		if a.Message != nil {
			if l.check(a.Message).ContainsMarked() {
				l.Errorf(a.Message.Range, "Sensitive value in error_message", "error_message is shown, so it cannot hold a sensitive value.")
			}
			n.Message = exprFunc(l, a.Message, "error_message", cty.String, value.StringOf)
		}
		out = append(out, n)
	}
	return out
}

// plural returns a number with a noun, such as "2 values".
func plural(n int, of string) string {
	if n != 1 {
		of += "s"
	}
	return strconv.Itoa(n) + " " + of
}

var errParameters = errors.New("a list of values is required, such as [var.order_id]")

// parametersOf converts the value of the argument `args` to the parameters of a statement. Lists,
// maps and objects become JSON.
func parametersOf(v cty.Value) ([]*string, error) {
	if v.ContainsMarked() {
		return nil, errors.New("a parameter cannot hold a sensitive value")
	}
	t := v.Type()
	if v.IsNull() || !v.IsWhollyKnown() || !t.IsTupleType() && !t.IsListType() {
		return nil, errParameters
	}
	out := make([]*string, 0, v.LengthInt())
	for _, e := range v.AsValueSlice() {
		switch {
		case e.IsNull():
			out = append(out, nil)
		case e.Type().IsPrimitiveType():
			text, err := value.StringOf(e)
			if err != nil {
				return nil, err
			}
			out = append(out, &text)
		default:
			doc, err := value.Encode(e, false)
			if err != nil {
				return nil, err
			}
			text := string(doc.JSON())
			out = append(out, &text)
		}
	}
	return out, nil
}
