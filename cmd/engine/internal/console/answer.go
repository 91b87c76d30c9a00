package console

import (
	"encoding/json"
	"strings"

	"github.com/saga-engine/engine/cmd/engine/render"
	"github.com/saga-engine/engine/dsl/diag"
)

// An answer is the result of the evaluation of one line: a value or errors.
type answer struct {
	Line       int             `json:"line"` // number of the line, from 1
	Expression string          `json:"expression"`
	Failed     bool            `json:"failed"`          // the expression has errors and no value
	Value      json.RawMessage `json:"value,omitempty"` // value without its sensitive parts
	Sensitive  bool            `json:"sensitive"`       // the value has sensitive parts

	found diag.Diagnostics
}

// evaluate evaluates an expression and returns its value or its errors. The parameter n is the
// number of the line that contains the expression.
func (c *names) evaluate(text string, n int) answer {
	a := answer{Line: n, Expression: text}
	v, found := c.flow.Evaluate(text, c.scope)
	if found.HasErrors() {
		a.Failed, a.found = true, atLine(c.named(found), n)
		return a
	}
	a.Sensitive = len(v.Sensitive()) > 0 || len(v.Secrets()) > 0
	a.Value = render.Redact(v)
	return a
}

// text returns the value for people, in the syntax of the language.
func (a answer) text() string { return render.Literal(a.Value, "") }

// atLine returns the errors of the input line n, with n as their line number. The console
// evaluates each line alone, so without atLine every error would name line 1.
func atLine(found diag.Diagnostics, n int) diag.Diagnostics {
	for i, d := range found {
		if !strings.HasPrefix(d.Range.File, "<") {
			continue // the error is in a file of the module, so its line number is right
		}
		found[i].Range.Start.Line += n - 1
		found[i].Range.End.Line += n - 1
		if d.Snippet != nil {
			s := *d.Snippet
			s.StartLine += n - 1
			found[i].Snippet = &s
		}
	}
	return found
}

// expression returns the expression in a line. It returns "" for an empty line and for a comment.
// The result `leave` is true if the line ends the console.
func expression(line string) (text string, leave bool) {
	text = strings.TrimSpace(line)
	if strings.HasPrefix(text, "#") || strings.HasPrefix(text, "//") {
		return "", false
	}
	return text, text == "exit"
}
