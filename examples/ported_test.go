package examples_test

import (
	"bufio"
	"bytes"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
)

// A sent signal is one that a test sends to a run.
type sent struct {
	run, name string
	args      []string       // flags of `engine signal`
	after     *regexp.Regexp // what `engine show` has to print before the signal is sent; nil = no need to wait
}

// A port is one run of an example in the directory ported.
type port struct {
	what    string
	dir     string
	flow    string   // workflow to start; "" = the only one
	vars    []string // values of variables
	signals []sent
	code    int // exit code of apply

	outputs map[string]string // outputs of a run that succeeds, as JSON
	status  string            // status of a run that does not succeed
	failure string            // its error code
	undone  int               // number of its steps that were undone; -1 = it depends on how far they came
}

// lateWaits matches what `engine show` prints once the mail was sent.
var lateWaits = regexp.MustCompile(`(?m)^late +wait +waiting`)

var ports = []port{
	{
		what: "a yes deploys", dir: "approval-gate", vars: []string{"release=v1"},
		signals: []sent{{run: "v1", name: "approval", args: []string{"--data", `{"approve":true}`}}},
		outputs: map[string]string{"production": `"succeeded"`},
	},
	{
		what: "an answer without a yes does not deploy", dir: "approval-gate", vars: []string{"release=v1"},
		signals: []sent{{run: "v1", name: "approval", args: []string{"--data", `{}`}}},
		outputs: map[string]string{"production": `"skipped"`},
	},
	{
		what: "an approved expense is paid", dir: "expense", vars: []string{"expense=e-1"},
		signals: []sent{{run: "e-1", name: "decision", args: []string{"--data", `{"status":"APPROVED"}`}}},
		outputs: map[string]string{"result": `"COMPLETED"`},
	},
	{
		what: "a rejected expense is not", dir: "expense", vars: []string{"expense=e-1"},
		signals: []sent{{run: "e-1", name: "decision", args: []string{"--data", `{"status":"REJECTED"}`}}},
		outputs: map[string]string{"result": `"REJECTED"`},
	},
	{
		what: "an expense without a decision is withdrawn", dir: "expense", vars: []string{"expense=e-1", "patience=100ms"},
		code: 4, status: "compensated", failure: "deadline_exceeded", undone: 1,
	},
	{
		what: "an answer in time is processed", dir: "escalation", vars: []string{"request=r-1"},
		signals: []sent{{run: "r-1", name: "approval", args: []string{"--data", `{"by":"maria"}`}}},
		outputs: map[string]string{"last": `"r-1 is approved by maria"`},
	},
	{
		what: "silence is escalated", dir: "escalation", vars: []string{"request=r-1", "patience=100ms"},
		outputs: map[string]string{"last": `"dana, please approve r-1"`},
	},
	{
		what: "all approve", dir: "approvals", vars: []string{"request=r-1"},
		signals: []sent{{run: "r-1", name: "approval-cleo"}, {run: "r-1", name: "approval-ann"}, {run: "r-1", name: "approval-ben"}},
		outputs: map[string]string{"approved_by": `["ann","ben","cleo"]`},
	},
	{
		what: "one refuses", dir: "approvals", vars: []string{"request=r-1"},
		signals: []sent{{run: "r-1", name: "approval-ann"}, {run: "r-1", name: "approval-ben", args: []string{"--fail", "refused"}}},
		code:    4, status: "failed", failure: "refused",
	},
	{
		what: "everything is booked", dir: "trip", vars: []string{"name=jo"},
		outputs: map[string]string{"booking": `["car for jo","hotel for jo","flight for jo"]`},
	},
	{
		what: "no seat is left", dir: "trip", vars: []string{"name=jo", "seats=0"},
		code: 4, status: "compensated", failure: "sold_out", undone: 2,
	},
	{what: "one fruit is delivered", dir: "choice", vars: []string{"fruit=cherry"}, outputs: map[string]string{"delivered": `["cherries"]`}},
	{what: "an unknown fruit is not", dir: "choice", vars: []string{"fruit=kiwi"}, outputs: map[string]string{"delivered": `[]`}},
	{
		what: "an order is shipped", dir: "purchase-order", vars: []string{"order=o-1"},
		signals: []sent{{run: "o-1", name: "confirmed"}, {run: "o-1", name: "shipped", args: []string{"--data", `{"parcel":"P-1"}`}}},
		outputs: map[string]string{"last": `"o-1 is on its way as P-1"`},
	},
	{
		what: "an order that is never confirmed is cancelled", dir: "purchase-order", vars: []string{"order=o-1", "patience=8s"},
		code: 4, status: "compensated", failure: "deadline_exceeded", undone: 1,
	},
	{
		what: "all papers come", dir: "application", vars: []string{"applicant=a-1"},
		signals: []sent{{run: "a-1", name: "letter_received"}, {run: "a-1", name: "application_submitted"}, {run: "a-1", name: "scores_received"}},
		outputs: map[string]string{"result": `"the application of a-1 is complete"`},
	},
	{
		what: "work is done in time", dir: "late-order", vars: []string{"order=o-1"},
		signals: []sent{{run: "o-1", name: "processed"}},
		outputs: map[string]string{"late": "false", "mailed": "false", "ended_by": `"processed"`},
	},
	{
		what: "work is late", dir: "late-order", vars: []string{"order=o-1", "threshold=100ms"},
		signals: []sent{{run: "o-1", name: "processed", after: lateWaits}},
		outputs: map[string]string{"late": "true", "mailed": "true", "ended_by": `"processed"`},
	},
	{what: "a message after a pause", dir: "reminder", vars: []string{"after=200ms"}, outputs: map[string]string{"sent": `"Hello"`, "waited": "true"}},
	{
		what: "one object cannot be read", dir: "batch",
		outputs: map[string]string{"published": `{"a":{"n":1,"new_field":"mine"},"c":{"n":3,"new_field":"mine"}}`, "failed": `["b"]`},
	},
	{
		what: "no object can be read", dir: "batch", vars: []string{`objects={"a":"","b":""}`},
		outputs: map[string]string{"published": `{}`, "failed": `["a","b"]`},
	},
	{
		what: "the trip is a saga of its own", dir: "journey", flow: "journey", vars: []string{"name=ann"},
		outputs: map[string]string{"booking": `"hotel for ann, flight for ann"`, "train": `"skipped"`},
	},
	{
		what: "a trip that fails is replaced", dir: "journey", flow: "journey", vars: []string{"name=ann", "seats=0"},
		outputs: map[string]string{"booking": `"none"`, "train": `"succeeded"`},
	},
	{
		what: "without insurance the trip is cancelled", dir: "journey", flow: "journey", vars: []string{"name=ann", "insured=false"},
		code: 4, status: "compensated", failure: "refused", undone: 2,
	},
	{
		what: "a quarter of the records may fail", dir: "records", flow: "records", vars: []string{`broken=["c"]`},
		outputs: map[string]string{"processed": `["a","b","d"]`},
	},
	{
		what: "half of the records may not", dir: "records", flow: "records", vars: []string{`broken=["c","a"]`},
		code: 4, status: "compensated", failure: "broken_record", undone: -1, // some of the others may not have begun
	},
	{
		what: "a job is asked until it is done", dir: "poll", vars: []string{"job=j-1", "interval=10ms"},
		outputs: map[string]string{"states": `["QUEUED","RUNNING","SUCCEEDED"]`, "report": `"j-1 succeeded"`},
	},
	{
		what: "a job fails before the last question", dir: "poll", vars: []string{"job=j-1", "interval=10ms", `states=["RUNNING","RUNNING","RUNNING","RUNNING","FAILED"]`},
		outputs: map[string]string{"states": `["RUNNING","RUNNING","RUNNING","RUNNING","FAILED"]`, "report": `"j-1 failed"`},
	},
	{
		what: "a job that does not end is cancelled", dir: "poll", vars: []string{"job=j-1", "interval=10ms", `states=["QUEUED","RUNNING","RUNNING","RUNNING","RUNNING","SUCCEEDED"]`},
		code: 4, status: "compensated", failure: "max_iterations", undone: 1,
	},
	{what: "a list of three pages", dir: "pages", outputs: map[string]string{"pages": "3", "executions": `["e-1","e-2","e-3","e-4","e-5"]`}},
	{what: "a list that fills two pages", dir: "pages", vars: []string{"executions=a\nb\nc\nd\n"}, outputs: map[string]string{"pages": "2", "executions": `["a","b","c","d"]`}},
	{what: "an empty list", dir: "pages", vars: []string{"executions="}, outputs: map[string]string{"pages": "1", "executions": `[]`}},
	{what: "good data", dir: "data-check", outputs: map[string]string{"rows": "3"}},
	{what: "a row is missing", dir: "data-check", vars: []string{"rows=4"}, code: 4, status: "failed", failure: "row_count"},
	{what: "a trip with nine passengers", dir: "data-check", vars: []string{"trips=9,2\n", "rows=1"}, code: 4, status: "failed", failure: "threshold"},
	{what: "trips are longer than yesterday", dir: "data-check", vars: []string{"yesterday=0.5"}, code: 4, status: "failed", failure: "interval"},
	{what: "the circuit closes again", dir: "breaker", outputs: map[string]string{"circuit": `"closed"`, "attempts": "4"}},
	{what: "the service stays away", dir: "breaker", vars: []string{"failures=9"}, code: 4, status: "failed", failure: "unavailable"},
}

// Each workflow that was written after an example of another system ends as its story says.
func TestPorted(t *testing.T) {
	t.Parallel()
	for _, p := range ports {
		t.Run(p.dir+"/"+p.what, func(t *testing.T) {
			t.Parallel()
			m := p.apply(t)
			end := last(t, m, "run_finished")
			if p.code == 0 {
				outputs(t, m, p.outputs)
			} else if end.Status != p.status || end.Code != p.failure || p.undone >= 0 && end.Undone != p.undone {
				t.Errorf("run_finished = %+v, want %s after %s, %d undone", end, p.status, p.failure, p.undone)
			}
			held := slices.ContainsFunc(m, func(m message) bool { return m.Type == "step_held" })
			if p.dir == "breaker" && !held {
				t.Error("the open circuit held nothing")
			}
		})
	}
}

// apply applies the example in a state of its own, and sends its signals meanwhile.
func (p port) apply(t *testing.T) []message {
	t.Helper()
	state := embedded(t)
	args := append([]string{"apply", "--json", filepath.Join("ported", p.dir)}, state...)
	if p.flow != "" {
		args = append(args, "--workflow", p.flow)
	}
	for _, v := range p.vars {
		args = append(args, "--var", v)
	}
	cmd := command(t, "engine", args...)
	var stdout, stderr bytes.Buffer
	cmd.Stdout, cmd.Stderr = &stdout, &stderr
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	for _, s := range p.signals {
		if s.after != nil {
			await(t, s.after.String(), func() bool {
				return s.after.MatchString(engine(t, append([]string{"show", s.run}, state...)...).stdout)
			})
		}
		// The signal is refused until the run exists. A signal that comes before its step waits
		// is kept.
		await(t, "the run to take signal "+s.name, func() bool {
			return engine(t, slices.Concat([]string{"signal", s.run, s.name}, state, s.args)...).code == 0
		})
	}
	err := cmd.Wait()
	var exit *exec.ExitError
	if err != nil && (!errors.As(err, &exit) || exit.ExitCode() < 0) {
		t.Fatalf("apply: %v\n%s", err, &stderr)
	}
	return told(t, p.code, ran{cmd.ProcessState.ExitCode(), stdout.String(), stderr.String()}, args...)
}

// portedDirs returns the directories of the examples that were written after others.
func portedDirs(t *testing.T) []string {
	t.Helper()
	paths, err := filepath.Glob("ported/*/workflow.hcl")
	if err != nil || len(paths) == 0 {
		t.Fatalf("ported examples: %v, %v", paths, err)
	}
	var dirs []string
	for _, path := range paths {
		dirs = append(dirs, filepath.Base(filepath.Dir(path)))
	}
	return dirs
}

// Each of them is formatted, valid without a warning, and run by TestPorted.
func TestPortedAreTidy(t *testing.T) {
	t.Parallel()
	for _, dir := range portedDirs(t) {
		t.Run(dir, func(t *testing.T) {
			t.Parallel()
			path := filepath.Join("ported", dir)
			if r := engine(t, "validate", "--strict", path); r.code != 0 {
				t.Errorf("validate = %d\n%s%s", r.code, r.stdout, r.stderr)
			}
			if r := engine(t, "fmt", "--check", path); r.code != 0 {
				t.Errorf("fmt --check = %d\n%s%s", r.code, r.stdout, r.stderr)
			}
			if !slices.ContainsFunc(ports, func(p port) bool { return p.dir == dir }) {
				t.Error("no test runs this example")
			}
		})
	}
}

// portedRow finds the rows of the table: the directory, and the lines of the workflow there and
// here.
var portedRow = regexp.MustCompile(`(?m)^\| \[([a-z-]+)\]\(([a-z-]+)\) \|.*\| (\d+|–) \| (\d+) \|[^|]+\|$`)

// The table in README.md has a row for each example, with the number of its lines.
func TestPortedTable(t *testing.T) {
	t.Parallel()
	text, err := os.ReadFile("ported/README.md")
	if err != nil {
		t.Fatal(err)
	}
	var listed []string
	for _, row := range portedRow.FindAllStringSubmatch(string(text), -1) {
		dir := row[1]
		if row[2] != dir {
			t.Errorf("row %s links to %s", dir, row[2])
		}
		listed = append(listed, dir)
		if got := strconv.Itoa(codeLines(t, filepath.Join("ported", dir, "workflow.hcl"))); got != row[4] {
			t.Errorf("%s has %s lines, the table says %s", dir, got, row[4])
		}
	}
	slices.Sort(listed)
	if want := portedDirs(t); !slices.Equal(listed, want) {
		t.Errorf("the table lists %v, want %v", listed, want)
	}
}

// codeLines counts the lines of a file that are neither empty nor a comment.
func codeLines(t *testing.T, path string) (n int) {
	t.Helper()
	data, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	for lines := bufio.NewScanner(bytes.NewReader(data)); lines.Scan(); {
		if line := strings.TrimSpace(lines.Text()); line != "" && !strings.HasPrefix(line, "#") {
			n++
		}
	}
	return n
}
