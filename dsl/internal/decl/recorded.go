package decl

import (
	"strconv"
	"strings"

	"github.com/hashicorp/hcl/v2/hclsyntax"
	"github.com/zclconf/go-cty/cty"

	"github.com/saga-engine/engine/dsl/internal/eval"
	"github.com/saga-engine/engine/dsl/internal/functions"
	"github.com/saga-engine/engine/dsl/internal/metered"
	"github.com/saga-engine/engine/dsl/internal/sorted"
	"github.com/saga-engine/engine/dsl/internal/syntax"
	"github.com/saga-engine/engine/dsl/secret"
)

// A readRecorder evaluates the calls of file(), env() and similar functions in a definition. It
// does this while the definition is loaded, and keeps the results in Module.Reads.
type readRecorder struct{ *decoder }

// recordReads evaluates each call of file(), env() and similar functions in a block and in its
// inner blocks. It adds the results to Module.Reads.
func (d readRecorder) recordReads(b *syntax.Block) {
	for _, name := range sorted.Keys(b.Attrs) {
		d.recordExpr(b.Attrs[name])
	}
	for _, a := range b.Args {
		d.recordExpr(a.Expr)
	}
	for _, c := range b.Blocks {
		d.recordReads(c)
	}
}

// recordExpr evaluates each call of file(), env() and similar functions in one expression, and adds
// the results to Module.Reads. It also checks the templates in calls of templatefile() and
// templatestring(), if the texts of these templates are known before a run.
func (d readRecorder) recordExpr(e *eval.Expr) {
	for _, call := range eval.Calls(e.Syntax, sorted.Keys(functions.Literal)...) {
		args, ok := literalArguments(call)
		if !ok {
			e.Bad = true
			d.Errorf(call.Range(), "Not a literal argument",
				"%s() is read once, when the definition is loaded, so %s must be a plain string.", call.Name, literalPart(call.Name))
			continue
		}
		if call.Name == "env" && d.lit.reservedEnv(args[0]) {
			e.Bad = true
			d.Errorf(call.Range(), "Reserved variable", "env(%q): %s.", args[0], secret.ReservedEnvRule)
			continue
		}
		if err := d.record(call.Name, args); err != nil {
			e.Bad = true
			d.Errorf(call.Range(), "Cannot read file", "%s(%s): %s.", call.Name, quoted(args), err)
			continue
		}
		if call.Name == "templatefile" {
			d.checkTemplate(e, call, d.m.Reads.Files[args[0]])
		}
	}
	for _, call := range eval.Calls(e.Syntax, "templatestring") {
		if len(call.Args) == 0 {
			continue
		}
		if text, ok := eval.LiteralText(call.Args[0]); ok {
			d.checkTemplate(e, call, text)
		}
	}
}

// literalPart returns words for a message, such as "its first argument". These words name the
// arguments of the function that must be plain strings.
func literalPart(function string) string {
	switch function {
	case "fileset":
		return "each argument"
	case "templatefile":
		return "its first argument"
	}
	return "its argument"
}

// literalArguments returns the arguments of a call that must be plain strings. It returns false if
// one of these arguments is not a plain string, or if the call has too few or too many arguments.
func literalArguments(call *hclsyntax.FunctionCallExpr) ([]string, bool) {
	n := functions.Literal[call.Name]
	if call.ExpandFinal || len(call.Args) < n || len(call.Args) > n && call.Name != "templatefile" {
		return nil, false
	}
	args := make([]string, n)
	for i := range args {
		text, ok := eval.LiteralText(call.Args[i])
		if !ok {
			return nil, false
		}
		args[i] = text
	}
	return args, true
}

func quoted(args []string) string {
	out := make([]string, len(args))
	for i, a := range args {
		out[i] = strconv.Quote(a)
	}
	return strings.Join(out, ", ")
}

// record evaluates one call of file(), env() or a similar function, and adds the result to
// Module.Reads.
func (d readRecorder) record(function string, args []string) (err error) {
	switch function {
	case "env":
		d.source.readEnv(args[0])
	case "fileexists":
		err = d.source.readExists(args[0])
	case "fileset":
		err = d.source.readSet(args[0], args[1])
	default:
		err = d.source.readFile(args[0], function == "file" || function == "templatefile")
	}
	if err == nil {
		d.m.Reads.Prepare(function, args)
	}
	return err
}

// checkTemplate checks the template of a call, and reports an error in it. The parameter `text` is
// the template. If the second argument of the call is an object such as { a = 1 }, checkTemplate
// also checks the names that the template uses.
func (d readRecorder) checkTemplate(e *eval.Expr, call *hclsyntax.FunctionCallExpr, text string) {
	var names []string
	if len(call.Args) == 2 && !call.ExpandFinal {
		names = writtenNames(call.Args[1])
	}
	if err := functions.CheckTemplate(&metered.Meter{Allowance: d.Allowance()}, text, names); err != nil {
		e.Bad = true
		d.Errorf(call.Args[0].Range(), "Invalid template", "%s", endedSentence(err.Error()))
	}
}

// endedSentence returns the message in the parameter `text`. It adds a full stop, unless the
// message already ends in a full stop or a question mark.
func endedSentence(text string) string {
	if strings.HasSuffix(text, "?") || strings.HasSuffix(text, ".") {
		return text
	}
	return text + "."
}

// writtenNames returns the names in an object such as { a = 1 }, which has the name "a". It
// returns nil if the expression is not such an object, or if one of the names is computed.
func writtenNames(e hclsyntax.Expression) []string {
	object, ok := e.(*hclsyntax.ObjectConsExpr)
	if !ok {
		return nil
	}
	names := []string{}
	for _, item := range object.Items {
		name, diags := metered.EvaluateOnce(item.KeyExpr, nil, nil)
		if diags.HasErrors() || name.IsNull() || !name.IsKnown() || name.Type() != cty.String {
			return nil
		}
		names = append(names, name.AsString())
	}
	return names
}
