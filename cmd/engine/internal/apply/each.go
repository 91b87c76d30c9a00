package apply

import (
	"bufio"
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"os"
	"slices"
	"strconv"
	"strings"

	"github.com/saga-engine/engine/cmd/engine/internal/cli"
	"github.com/saga-engine/engine/cmd/engine/internal/engines"
	"github.com/saga-engine/engine/cmd/engine/internal/exit"
	"github.com/saga-engine/engine/cmd/engine/internal/module"
	"github.com/saga-engine/engine/cmd/engine/internal/session"
	"github.com/saga-engine/engine/cmd/engine/render"
	"github.com/saga-engine/engine/dsl"
	"github.com/saga-engine/engine/engine"
	"github.com/saga-engine/engine/engine/store/naming"
)

const (
	eachPage = 1000    // largest number of lines that are recorded together
	eachLine = 4 << 20 // longest line, in bytes
)

// An item is one line of the file of --each, with the result of recording its run.
type item struct {
	line int
	run  string // public id of the run; "" = not known
	what string // itemRecorded, itemExists, itemRefused or itemUnsure
	err  error  // nil if the run is recorded
	sub  engine.Submission
}

// Values of the field `what` of an item.
const (
	itemRecorded = "recorded"
	itemExists   = "exists"
	itemRefused  = "refused"
	itemUnsure   = "unsure" // the state did not answer, so the run may be recorded
)

// checkEach returns an error if --each cannot be combined with another flag.
func (o *Options) checkEach() error {
	switch {
	case o.Each == "" && o.EachKey != "":
		return cli.Failed("Invalid flag", "--each-key names a variable of the lines of --each, so it needs --each FILE.")
	case o.Each != "" && (o.Wait > 0 || o.Only || o.Confirm || o.Detach):
		return cli.Failed("Invalid flag", "--each only records runs: it cannot be combined with --detach, --wait-timeout, --only or --confirm.")
	case o.EachKey != "" && o.RunID == "":
		return cli.Failed("Invalid flag", "--each-key makes the names of the runs together with --run-id: the runs are named RUN-ID.KEY. Add --run-id.")
	}
	return nil
}

// each records one run for each line of a file. If one line can start no run, each still records
// the runs of the other lines. Afterwards engines that serve the state work on the runs.
func each(ctx context.Context, a *cli.App, path string, o Options) error {
	if err := errors.Join(o.checkEach(), o.check(a)); err != nil {
		return err
	}
	l, err := module.Link(ctx, a, path, o.Agents)
	if err != nil {
		return err
	}
	wf, err := module.Choose(l.Def, o.Workflow)
	if err != nil {
		return err
	}
	if o.RunID == "" && wf.UniqueKey == nil {
		return cli.Failed("Runs without a name", "If the command is repeated, it would start every run again. Add --run-id PREFIX, so that each line names its run, or add a unique block to workflow %q.", wf.Name)
	}
	b := &batch{a: a, o: o, wf: wf}
	if b.given, err = module.Assignments(a, l.Module, o.Values); err != nil {
		return err
	}
	lines, name, err := open(a, o.Each)
	if err != nil {
		return err
	}
	defer lines.Close()
	noteUnlocked(a, &module.Request{Linked: l, Workflow: wf})
	if b.s, err = session.OpenJoining(ctx, a, l.Dir, l.Shown); err != nil {
		return err
	}
	defer b.s.Close()
	session.NoteState(a, b.s)
	b.def = l.Def
	if err := b.read(ctx, lines, name); err != nil {
		return errors.Join(b.print(), err)
	}
	if err := b.print(); err != nil {
		return err
	}
	return b.code()
}

// open opens the file of --each. The name "-" means the standard input. The result `name` is the
// name for messages.
func open(a *cli.App, file string) (lines io.ReadCloser, name string, err error) {
	if file == "-" {
		return io.NopCloser(a.Stdin), "the standard input", nil
	}
	f, err := os.Open(a.Path(file))
	if err != nil {
		return nil, "", cli.Failed("Cannot read the lines", "--each: %s.", err)
	}
	return f, file, nil
}

// A batch records the runs of the lines of a file.
type batch struct {
	a     *cli.App
	s     *session.Session
	o     Options
	wf    *dsl.Workflow
	def   *dsl.Definition
	given []dsl.Assignment // values from flags, files and the environment
	// All lines so far. The field `sub` of an item is set only until the run of the item is
	// recorded.
	items []item
}

// read reads all lines, and records their runs.
func (b *batch) read(ctx context.Context, lines io.Reader, name string) error {
	scan := bufio.NewScanner(lines)
	scan.Buffer(make([]byte, 0, 64<<10), eachLine)
	begin := 0
	for n := 1; scan.Scan(); n++ {
		if len(bytes.TrimSpace(scan.Bytes())) == 0 {
			continue
		}
		b.items = append(b.items, b.item(n, scan.Bytes()))
		if len(b.items)-begin == eachPage {
			if err := b.record(ctx, b.items[begin:]); err != nil {
				return err
			}
			begin = len(b.items)
		}
	}
	if err := errors.Join(b.record(ctx, b.items[begin:]), scan.Err()); err != nil {
		if errors.Is(err, bufio.ErrTooLong) {
			return cli.Failed("Line too long", "A line of %s has more than 4 MiB. The lines before it were handled.", name)
		}
		return err
	}
	if len(b.items) == 0 {
		return cli.Failed("No lines", "%s holds no line. A line is a JSON object with values of variables, such as {\"id\": \"o-1\"}.", name)
	}
	return nil
}

// item returns the item of a line. If the line cannot start a run, the item has an error.
func (b *batch) item(n int, text []byte) item {
	x := item{line: n, what: itemRefused}
	input := map[string]json.RawMessage{}
	if err := json.Unmarshal(text, &input); err != nil {
		x.err = fmt.Errorf("the line is no JSON object with values of variables: %w", err)
		return x
	}
	all := slices.Clone(b.given)
	for _, name := range slices.Sorted(maps.Keys(input)) {
		a, err := b.wf.Assign(name, input[name], fmt.Sprintf("line %d", n))
		if err != nil {
			x.err = err
			return x
		}
		all = append(all, a)
	}
	vars, diags := b.wf.Bind(all)
	if diags.HasErrors() {
		x.err = diags.Err()
		return x
	}
	if x.run, x.err = b.runName(input); x.err != nil {
		return x
	}
	x.sub = engine.Submission{
		Definition: b.def, Workflow: b.wf.Name, Vars: vars, Name: x.run, By: cli.UserName(),
		ReplyTo: b.o.ReplyTo, Correlation: b.o.Correlation, StartBy: b.o.startBy(), Priority: b.o.priority(),
	}
	return x
}

// runName returns the name of the run of a line. If the user repeats the command, the line gets the
// same run name again, so no second run is made. The name is RUN-ID.KEY. RUN-ID is the value of
// --run-id. KEY is the value that the line gives to the variable in --each-key. Without --each-key,
// KEY is a hash of the line, so the user may add, remove and move lines. Without --run-id, runName
// returns "". Then only the unique key of the run can prevent a second run.
func (b *batch) runName(input map[string]json.RawMessage) (string, error) {
	if b.o.RunID == "" {
		return "", nil
	}
	key := ""
	if b.o.EachKey == "" {
		// Marshal sorts the names, so that their order does not change the hash.
		plain, err := json.Marshal(input)
		if err != nil {
			return "", fmt.Errorf("encode the line: %w", err)
		}
		sum := sha256.Sum256(plain)
		key = hex.EncodeToString(sum[:8])
	} else {
		raw := strings.TrimSpace(string(input[b.o.EachKey]))
		switch {
		case raw == "" || raw == "null" || raw == `""`:
			return "", fmt.Errorf("the line has no value for %q, which --each-key names", b.o.EachKey)
		case raw[0] == '{' || raw[0] == '[':
			return "", fmt.Errorf("the value of %q is no text and no number, so it cannot name a run", b.o.EachKey)
		case raw[0] == '"':
			if err := json.Unmarshal([]byte(raw), &key); err != nil {
				return "", fmt.Errorf("read the value of %q: %w", b.o.EachKey, err)
			}
		default:
			key = raw
		}
	}
	name := b.o.RunID + "." + key
	if err := (naming.Names{Name: name, Workflow: b.wf.Name}).Validate(); err != nil {
		return "", errors.New(strings.TrimPrefix(err.Error(), "engine: "))
	}
	return name, nil
}

// record records the runs of the items that have no error.
func (b *batch) record(ctx context.Context, items []item) error {
	var all []engine.Submission
	var of []int
	for i := range items {
		if items[i].err == nil {
			all, of = append(all, items[i].sub), append(of, i)
		}
	}
	if len(all) == 0 {
		return nil
	}
	out, err := engine.EnqueueAll(ctx, engines.Visitor(b.a, b.s, b.o.Ceilings.To(engine.Options{Lease: applyLease})), all)
	for i, e := range out {
		x := &items[of[i]]
		x.sub, x.err = engine.Submission{}, e.Err
		if e.Name != "" {
			x.run = e.Name
		}
		switch {
		case e.Err == nil && e.Exists:
			x.what = itemExists
		case e.Err == nil:
			x.what = itemRecorded
		case e.Run != 0:
			x.what = itemUnsure
		}
	}
	if err != nil && ctx.Err() != nil {
		return b.s.Wrap("record runs", ctx.Err())
	}
	return nil
}

func (b *batch) print() error {
	count := map[string]int{}
	table := render.Table{Head: []string{"LINE", "RUN", "RESULT"}}
	list := []map[string]any{}
	for _, x := range b.items {
		count[x.what]++
		m := map[string]any{"line": x.line, "run": x.run, "result": x.what}
		text := x.what
		if x.err != nil {
			m["error"] = x.err.Error()
			text += ": " + strings.Join(strings.Fields(x.err.Error()), " ")
		}
		list = append(list, m)
		table.Add(strconv.Itoa(x.line), render.Clean(x.run), text)
	}
	if b.a.JSON {
		return b.a.PrintJSON(map[string]any{"workflow": b.wf.Name, "items": list, "count": count})
	}
	if err := table.Write(b.a.Stdout); err != nil {
		return fmt.Errorf("write to stdout: %w", err)
	}
	b.a.Note("%d recorded, %d existed already, %d refused, %d unsure.", count[itemRecorded], count[itemExists], count[itemRefused], count[itemUnsure])
	return nil
}

// code returns the exit code of the command as an error; nil = each line has its run.
func (b *batch) code() error {
	worst := error(nil)
	for _, x := range b.items {
		switch x.what {
		case itemUnsure:
			b.a.Note("Some runs may be recorded, because the state did not answer. Repeat the command: a run that is recorded already is not started again.")
			return exit.Code(exit.Unsure)
		case itemRefused:
			worst = exit.Code(exit.Failed)
		}
	}
	return worst
}
