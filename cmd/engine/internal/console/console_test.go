package console

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"io"
	"os"
	"strings"
	"testing"
	"testing/fstest"

	"github.com/saga-engine/engine/cmd/engine/internal/cli"
	"github.com/saga-engine/engine/cmd/engine/internal/exit"
	"github.com/saga-engine/engine/dsl"
	"github.com/saga-engine/engine/dsl/diag"
)

// order returns the names of a workflow without agents. In a run the step "price" has succeeded.
func order(t *testing.T, inRun bool) *names {
	t.Helper()
	m, diags := dsl.Parse(fstest.MapFS{"w.hcl": {Data: []byte(`
workflow "w" {
  deadline = "1h"
  variable "number" { default = 3 }
  variable "who" { default = "ann" }
  variable "pin" {
    default   = "hunter22"
    sensitive = true
  }
  locals { broken = tonumber(var.who) }
  step "price" { value = { total = 42 } }
}`)}}, dsl.ParseOptions{})
	def, more := dsl.Link(m, nil)
	if def == nil {
		t.Fatal(append(diags, more...).Err())
	}
	wf := def.Workflow("w")
	vars, diags := wf.Bind(nil)
	if diags.HasErrors() {
		t.Fatal(diags.Err())
	}
	c := &names{flow: wf, scope: &dsl.Scope{Vars: vars}, about: "Workflow w.", named: func(d diag.Diagnostics) diag.Diagnostics {
		for i := range d {
			if d[i].Range.File == "w.hcl" {
				d[i].Range.File = "dir/w.hcl"
			}
		}
		return d
	}}
	if inRun {
		c.scope.Step = func(int) dsl.StepResult {
			return dsl.StepResult{One: dsl.InstanceResult{Status: "succeeded", Output: dsl.NewValue([]byte(`{"total":42}`), nil, nil)}}
		}
	}
	return c
}

// An app is a command with its streams.
type app struct {
	*cli.App
	out, errs bytes.Buffer
}

func newApp(stdin string) *app {
	a := &app{}
	a.App = &cli.App{
		Stdin: strings.NewReader(stdin), Stdout: &a.out, Stderr: &a.errs,
		Lookup: func(string) (string, bool) { return "", false },
	}
	return a
}

func TestLinesOfAPipe(t *testing.T) {
	a := newApp("# a comment\n\n var.number + 1 \nvar.nope\n// another\n{ p = var.pin, n = [1, null] }\nlocal.broken\nstep.price.output\nexit\n1\n")
	if err := order(t, false).readAll(a.App); !errors.Is(err, exit.Code(exit.Failed)) {
		t.Errorf("err %v, want exit code 1", err)
	}
	if want := "4\n{ n = [1, null], p = (sensitive) }\n"; a.out.String() != want {
		t.Errorf("standard output %q, want %q", a.out.String(), want)
	}
	for _, want := range []string{
		"<console> line 4", `There is no variable named "nope"`, "dir/w.hcl line 10", "<console> line 8", "Name a run with --run",
	} {
		if !strings.Contains(a.errs.String(), want) {
			t.Errorf("standard error lacks %q:\n%s", want, a.errs.String())
		}
	}

	a = newApp("step.price.output.total\nstep.price.status")
	if err := order(t, true).readAll(a.App); err != nil || a.out.String() != "42\n\"succeeded\"\n" || a.errs.Len() > 0 {
		t.Errorf("in a run: %v, %q, %q", err, a.out.String(), a.errs.String())
	}
}

func TestLinesAsJSON(t *testing.T) {
	a := newApp("var.number\n\nvar.nope\nvar.pin\n")
	a.JSON = true
	if err := order(t, false).readAll(a.App); !errors.Is(err, exit.Code(exit.Failed)) {
		t.Errorf("err %v, want exit code 1", err)
	}
	var got struct {
		FormatVersion string   `json:"format_version"`
		Results       []answer `json:"results"`
		Diagnostics   []struct {
			Summary string `json:"summary"`
			Range   struct {
				Start struct{ Line int }
			} `json:"range"`
		} `json:"diagnostics"`
	}
	if err := json.Unmarshal(a.out.Bytes(), &got); err != nil {
		t.Fatal(err)
	}
	if got.FormatVersion != "1.0" || len(got.Results) != 3 || len(got.Diagnostics) != 1 || a.errs.Len() > 0 {
		t.Fatalf("got %s, and on standard error %s", a.out.String(), a.errs.String())
	}
	if d := got.Diagnostics[0]; d.Summary != "Reference to undeclared variable" || d.Range.Start.Line != 3 {
		t.Errorf("the error is %+v, want one in line 3", d)
	}
	for i, want := range []struct {
		line              int
		value             string
		failed, sensitive bool
	}{{1, "3", false, false}, {3, "", true, false}, {4, `"(sensitive)"`, false, true}} {
		if r := got.Results[i]; r.Line != want.line || string(r.Value) != want.value || r.Failed != want.failed || r.Sensitive != want.sensitive {
			t.Errorf("result %d is %+v, want %+v", i, r, want)
		}
	}

	a = newApp("1")
	a.JSON = true
	if err := order(t, false).readAll(a.App); err != nil || strings.Contains(a.out.String(), "diagnostics") {
		t.Errorf("without an error: %v, %s", err, a.out.String())
	}
}

// Each line has the limits of every expression, and the next line works again.
func TestLimitsOfLines(t *testing.T) {
	a := newApp(strings.Repeat("(", 1000) + "\n[for a in range(1000) : [for b in range(1000) : [for c in range(1000) : c]]]\n" +
		`"` + strings.Repeat("x", 1<<20) + "\"\n1\n")
	if err := order(t, false).readAll(a.App); !errors.Is(err, exit.Code(exit.Failed)) || a.out.String() != "1\n" {
		t.Errorf("err %v, standard output %.100q", err, a.out.String())
	}
	for _, want := range []string{"Nesting too deep", "Expression too expensive", "line 3"} {
		if !strings.Contains(a.errs.String(), want) {
			t.Errorf("standard error lacks %q: %.2000s", want, a.errs.String())
		}
	}
	a = newApp("1\n" + strings.Repeat("x", maxLine+1))
	err := order(t, false).readAll(a.App)
	var p *cli.Problem
	if !errors.As(err, &p) || p.Diags[0].Summary != "Line too long" {
		t.Errorf("err %v, want that the line is too long", err)
	}
}

// keyboard is a terminal on which keys are typed. It counts how often it was raw.
type keyboard struct {
	*terminal
	keys        io.Reader
	screen      bytes.Buffer
	raw, edited int
}

func (k *keyboard) Read(p []byte) (int, error)  { return k.keys.Read(p) }
func (k *keyboard) Write(p []byte) (int, error) { return k.screen.Write(p) }

func typing(keys io.Reader) *keyboard {
	k := &keyboard{keys: keys}
	k.terminal = &terminal{
		ReadWriter: struct {
			io.Reader
			io.Writer
		}{readerFunc(k.Read), writerFunc(k.Write)},
		raw: func() (func(), error) {
			k.raw++
			return func() { k.edited++ }, nil
		},
		size: func() (int, int, bool) { return 80, 24, true },
	}
	return k
}

type readerFunc func([]byte) (int, error)

func (f readerFunc) Read(p []byte) (int, error) { return f(p) }

type writerFunc func([]byte) (int, error)

func (f writerFunc) Write(p []byte) (int, error) { return f(p) }

const up, ctrlD, ctrlC = "\x1b[A", "\x04", "\x03"

// A person types, completes with Tab, finds earlier lines with the arrow keys, and leaves.
func TestConversation(t *testing.T) {
	for _, tt := range []struct {
		name, keys string
		inRun      bool
		out        string
	}{
		{"two lines", "1\rvar.number * 2\r" + ctrlD, false, "1\n6\n"},
		{"Ctrl-C leaves", "1\r2" + ctrlC + "3\r", false, "1\n"},
		{"exit leaves", "exit\r1\r", false, ""},
		{"an error does not end it", "1 +\r2\r" + ctrlD, false, "2\n"},
		{"an earlier line", "1\r2\r" + up + up + "1\r" + ctrlD, false, "1\n2\n11\n"},
		{"one word", "var.nu\t + 1\r" + ctrlD, false, "4\n"},
		{"in the middle", "upper(var.w)\x1b[D\t\r" + ctrlD, false, "\"ANN\"\n"},
		{"a function", "isse\tvar.pin)\r" + ctrlD, false, "true\n"},
		{"a step", "step.p\tout\t.t\t\r" + ctrlD, true, "42\n"},
		{"nothing to add", "nope.\t\t1\r2\r" + ctrlD, false, "2\n"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			a, k := newApp(""), typing(strings.NewReader(tt.keys))
			if err := k.converse(t.Context(), a.App, order(t, tt.inRun)); err != nil {
				t.Fatalf("%v, want that the console ends well", err)
			}
			if a.out.String() != tt.out {
				t.Errorf("standard output %q, want %q; the screen: %q, standard error: %s", a.out.String(), tt.out, k.screen.String(), a.errs.String())
			}
			if k.raw == 0 || k.raw != k.edited {
				t.Errorf("the terminal was raw %d times and restored %d times", k.raw, k.edited)
			}
			if !strings.Contains(a.errs.String(), "Workflow w.") {
				t.Errorf("standard error does not say what the names are: %s", a.errs.String())
			}
		})
	}
}

// If several words are possible, Tab adds what they have in common, and then shows them.
func TestTabShowsWords(t *testing.T) {
	a, k := newApp(""), typing(strings.NewReader("var.\t"+ctrlC))
	if err := k.converse(t.Context(), a.App, order(t, false)); err != nil {
		t.Fatal(err)
	}
	if !strings.Contains(k.screen.String(), "var.number  var.pin  var.who") {
		t.Errorf("the screen lacks the words: %q", k.screen.String())
	}
	a, k = newApp(""), typing(strings.NewReader("\t"+ctrlC))
	if err := k.converse(t.Context(), a.App, order(t, false)); err != nil {
		t.Fatal(err)
	}
	if !strings.Contains(k.screen.String(), "abs(") || !strings.Contains(k.screen.String(), " more") {
		t.Errorf("the screen does not say that there are more words: %q", k.screen.String())
	}
	line, pos, ok := completer(&k.screen, order(t, false))("setp", 4, '\t')
	if line != "setproduct(" || pos != len(line) || !ok {
		t.Errorf("setp becomes %q with the cursor at %d", line, pos)
	}
	if _, _, ok := completer(&k.screen, order(t, false))("setp", 4, 'x'); ok {
		t.Error("another key completes, too")
	}
}

// A process that is asked to end leaves the terminal as it was.
func TestTerminalIsRestored(t *testing.T) {
	silent, w, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	defer silent.Close()
	defer w.Close()
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	a, k := newApp(""), typing(silent)
	if err := k.converse(ctx, a.App, order(t, false)); !errors.Is(err, exit.Code(exit.Failed)) {
		t.Errorf("err %v, want exit code 1", err)
	}
	if k.raw != 1 || k.edited != 1 {
		t.Errorf("the terminal was raw %d times and restored %d times", k.raw, k.edited)
	}
}

// Without a terminal on both sides lines are read as from a pipe.
func TestPipeIsNoTerminal(t *testing.T) {
	r, w, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	defer w.Close()
	a := newApp("")
	a.Stdin = r
	if terminalOf(a.App) != nil || terminalOf(newApp("").App) != nil {
		t.Error("a pipe is taken for a terminal")
	}
}
