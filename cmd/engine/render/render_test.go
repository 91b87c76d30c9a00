package render_test

import (
	"bytes"
	"encoding/json"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/saga-engine/engine/cmd/engine/render"
	"github.com/saga-engine/engine/dsl"
	"github.com/saga-engine/engine/engine/story"
)

var update = flag.Bool("update", false, "rewrite golden files")

func exit(f story.Fact) int {
	if f.Kind != story.FactRunFinished && f.Kind != story.FactRunParked {
		return -1
	}
	switch f.Status {
	case "succeeded":
		return 0
	case "compensation_failed":
		return 5
	}
	return 4
}

var stories = map[string]struct {
	begin render.Story
	beats func() []beat
}{
	"happy":       {order, happy},
	"undone":      {order, func() []beat { return undone("undone") }},
	"undo-failed": {order, func() []beat { return undone("undo_failed") }},
	"hostile":     {order, hostile},
	"doubts":      {keyed, doubts},
}

func play(v render.View, s render.Story, beats []beat) {
	v.Begin(s)
	seq := 1
	for _, b := range beats {
		if b.facts == nil {
			v.Tick(b.now)
			continue
		}
		v.Facts(seq, b.facts)
		seq += len(b.facts)
	}
	v.End()
}

func golden(t *testing.T, name, got string) {
	t.Helper()
	file := filepath.Join("testdata", name+".golden")
	if *update {
		if err := os.WriteFile(file, []byte(got), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	if got != string(want) {
		t.Errorf("%s differs; got:\n%s\nwant:\n%s", file, got, want)
	}
}

func TestPlain(t *testing.T) {
	for name, s := range stories {
		t.Run(name, func(t *testing.T) {
			var out bytes.Buffer
			play(render.NewPlain(&out, exit), s.begin, s.beats())
			golden(t, "plain-"+name, out.String())
		})
	}
}

func TestJSON(t *testing.T) {
	for name, s := range stories {
		t.Run(name, func(t *testing.T) {
			var out bytes.Buffer
			play(render.NewJSON(&out, "0.0.0-test", exit, func() time.Time { return start }), s.begin, s.beats())
			golden(t, "json-"+name, out.String())
		})
	}
}

// Every line of the stream has Terraform's envelope, and the facts are
// numbered without gaps.
func TestJSONEnvelope(t *testing.T) {
	var out bytes.Buffer
	play(render.NewJSON(&out, "0.0.0-test", exit, func() time.Time { return start }), order, undone("undone"))
	seq := 0
	for i, text := range strings.Split(strings.TrimSpace(out.String()), "\n") {
		var l map[string]any
		if err := json.Unmarshal([]byte(text), &l); err != nil {
			t.Fatalf("line %d: %v", i, err)
		}
		for _, k := range []string{"@level", "@message", "@module", "@timestamp", "type"} {
			if s, ok := l[k].(string); !ok || s == "" {
				t.Errorf("line %d has no %s: %s", i, k, text)
			}
		}
		if i == 0 && (l["type"] != "version" || l["ui"] != render.StreamVersion) {
			t.Errorf("first line = %s, want type version", text)
		}
		if n, ok := l["seq"].(float64); ok {
			seq++
			if int(n) != seq || l["run"] != "o-1042" {
				t.Errorf("line %d: seq %v of run %v, want %d of o-1042", i, l["seq"], l["run"], seq)
			}
		}
	}
	if seq == 0 {
		t.Error("no fact in the stream")
	}
}

func TestTerminal(t *testing.T) {
	for name, s := range stories {
		t.Run(name, func(t *testing.T) {
			var frames strings.Builder
			screen := newScreen(100, 24)
			v := render.NewTerminal(screen, render.TerminalOptions{
				Size: func() (int, int) { return 100, 24 },
				Exit: exit,
				Now:  func() time.Time { screen.ticks++; return start.Add(time.Duration(screen.ticks) * time.Second) },
			})
			v.Begin(s.begin)
			seq := 1
			for _, b := range s.beats() {
				if b.facts == nil {
					v.Tick(b.now)
				} else {
					v.Facts(seq, b.facts)
					seq += len(b.facts)
				}
				fmt.Fprintf(&frames, "--- %s\n%s", b.now.Format("15:04:05.0"), screen)
			}
			v.End()
			fmt.Fprintf(&frames, "--- end\n%s", screen)
			golden(t, "terminal-"+name, frames.String())
		})
	}
}

// A verb, a signal or a takeover that leaves a run parked does not hide that the run needs a person.
func TestTerminalStaysParked(t *testing.T) {
	for name, f := range map[string]story.Fact{
		"refused verb":  {Kind: story.FactVerb, Status: "refused", Code: "resume", Message: "the run is not paused"},
		"accepted verb": {Kind: story.FactVerb, Status: "accepted", Code: "settle", Step: "s"},
		"signal":        {Kind: story.FactSignalReceived, Signal: "go"},
		"takeover":      {Kind: story.FactRunTakenOver},
	} {
		t.Run(name, func(t *testing.T) {
			screen := newScreen(100, 8)
			v := render.NewTerminal(screen, render.TerminalOptions{Size: func() (int, int) { return 100, 8 }})
			v.Begin(render.Story{Run: "r", Workflow: "w", Steps: []render.StepInfo{{Name: "s", Action: "mock.call"}}})
			v.Facts(1, []story.Fact{{Kind: story.FactRunParked, At: at(1), Status: "parked", Step: "s", Code: "declined"}})
			f.At, f.Rest = at(2), "parked"
			v.Facts(2, []story.Fact{f})
			v.Tick(at(3))
			if text := screen.shown(); !strings.Contains(text, "Run parked") {
				t.Errorf("the screen does not say that the run needs a person:\n%s", text)
			}
			f.Rest = ""
			v.Facts(3, []story.Fact{f})
			v.Tick(at(4))
			if text := screen.shown(); strings.Contains(text, "Run parked") {
				t.Errorf("the screen says that a run needs a person which continues:\n%s", text)
			}
			v.End()
		})
	}
}

// A run of more steps than the screen has lines: what has ended scrolls up
// once, in order, and no line is lost or drawn twice.
func TestTerminalScrolls(t *testing.T) {
	screen := newScreen(60, 8)
	v := render.NewTerminal(screen, render.TerminalOptions{Size: func() (int, int) { return 60, 8 }})
	v.Begin(render.Story{Run: "r", Workflow: "wide", Steps: []render.StepInfo{{Name: "s", Action: "mock.call"}}})
	const n = 40
	for i := range n {
		v.Facts(i+1, []story.Fact{began(fmt.Sprintf(`s["%02d"]`, i), "mock.call", 1, 1, 0, 30, 0)})
	}
	for i := range n {
		v.Facts(n+i+1, []story.Fact{{Kind: story.FactStepFinished, At: at(1), Step: fmt.Sprintf(`s["%02d"]`, i), Status: "succeeded", Took: time.Second}})
		v.Tick(at(1))
	}
	if _, err := v.Write([]byte("a log line\n")); err != nil {
		t.Fatal(err)
	}
	v.End()
	text := screen.String()
	last := -1
	for i := range n {
		want := fmt.Sprintf(`✔ s["%02d"]`, i)
		if c := strings.Count(text, want); c != 1 {
			t.Errorf("%q stands %d times, want once", want, c)
		}
		if p := strings.Index(text, want); p < last {
			t.Errorf("%q is out of order", want)
		} else {
			last = p
		}
	}
	if strings.Count(text, "a log line") != 1 {
		t.Errorf("the log line does not stand once:\n%s", text)
	}
	if !strings.Contains(text, "40 of 40 done") {
		t.Errorf("no summary:\n%s", text)
	}
}

// wideStory is a run with one step of many instances, of which a few are at work
// at a time.
var wideStory = render.Story{Run: "c-1", Workflow: "concert", Steps: []render.StepInfo{
	{Name: "seat", Action: "theatre.hold", Undo: true}, {Name: "pay", Action: "bank.pay", After: []string{"seat"}},
}}

func seat(n int) string { return fmt.Sprintf(`seat["%02d"]`, n) }

// seated begins and ends instances of the 60 that there are.
func seated(from, to int) []story.Fact {
	var facts []story.Fact
	for n := from; n < to; n++ {
		f := began(seat(n), "theatre.hold", 1, 3, 0, 30, 0)
		f.Among = 60
		facts = append(facts, f, story.Fact{Kind: story.FactStepFinished, At: at(1), Step: seat(n), Status: "succeeded", Took: time.Second})
	}
	return facts
}

// The header stays on the screen whatever scrolls up above it, and a step of
// many instances is one line that counts all of them, also those that have not
// begun. What needs a look has a line of its own.
func TestTerminalWide(t *testing.T) {
	screen := newScreen(80, 10)
	v := render.NewTerminal(screen, render.TerminalOptions{Size: func() (int, int) { return 80, 10 }, Exit: exit})
	has := func(wants ...string) {
		t.Helper()
		for _, want := range wants {
			if n := strings.Count(screen.shown(), want); n != 1 {
				t.Errorf("%q is on the screen %d times, want once:\n%s", want, n, screen.shown())
			}
		}
	}
	v.Begin(wideStory)
	v.Facts(1, []story.Fact{{Kind: story.FactRunCreated, At: at(0), RunDeadline: at(7200)}})
	v.Facts(2, seated(0, 37))
	more := []story.Fact{began(seat(37), "theatre.hold", 1, 3, 1, 30, 0), began(seat(38), "theatre.hold", 1, 3, 1, 30, 0)}
	v.Facts(76, append(more, story.Fact{
		Kind: story.FactRetryScheduled, At: at(1), Step: seat(38), Attempt: 2, Of: 3, Until: at(9), Code: "unavailable", Among: 60,
	}))
	v.Tick(at(2))
	has("concert  c-1", "deadline in 1h59m", "37 of 60, 1 running, 1 waiting", seat(38)+"  theatre.hold  try 2/3", "37 of 61 done")
	if strings.Contains(screen.String(), seat(12)) {
		t.Errorf("an instance that did well has a line of its own:\n%s", screen)
	}
	for n := range 20 { // failures scroll up
		f := story.Fact{Kind: story.FactStepFinished, At: at(2), Step: seat(38 + n), Status: "failed", Code: "taken"}
		v.Facts(80+n, []story.Fact{f})
	}
	v.Tick(at(3))
	has("concert  c-1", "deadline in 1h59m", "57 of 60, 1 running", "57 of 61 done")
	if !strings.Contains(screen.String(), seat(38)+"  theatre.hold  taken") {
		t.Errorf("a failure has no line:\n%s", screen)
	}
	v.Facts(100, []story.Fact{
		{Kind: story.FactStepFinished, At: at(3), Step: "seat", Status: "failed", Code: "taken"},
		{Kind: story.FactRunTurned, At: at(3), Step: "seat", Code: "taken", CompensationDeadline: at(3600)},
	})
	for n := range 12 {
		v.Facts(102+n, []story.Fact{
			{Kind: story.FactUndoStarted, At: at(3), Step: seat(n), Undo: true, Action: "theatre.free"},
			{Kind: story.FactUndoFinished, At: at(4), Step: seat(n), Undo: true, Action: "theatre.free", Status: "undone"},
		})
	}
	v.Tick(at(4))
	has("deadline of the undo in 59m56s", "↶ seat        theatre.free  12 of 38 undone", "12 of 38 undone ·")
	if screen.strange != "" {
		t.Errorf("terminal view wrote %q", screen.strange)
	}
}

// A screen that becomes narrower breaks the block's lines in two. All of them go
// when the block is drawn again.
func TestTerminalResize(t *testing.T) {
	screen, columns := newScreen(100, 30), 100
	v := render.NewTerminal(screen, render.TerminalOptions{Size: func() (int, int) { return columns, 30 }, Exit: exit})
	v.Begin(order)
	seq := 1
	for _, b := range prologue() {
		v.Facts(seq, b.facts)
		seq += len(b.facts)
	}
	v.Tick(at(2))
	for _, columns = range []int{60, 40, 33} {
		screen.narrow(columns)
		v.Tick(at(2))
		for _, want := range []string{"order  o-1042  ", "deadline in", "✔ reserve[\"mug\"]", "↻ charge", "2 of 5 done"} {
			if n := strings.Count(screen.String(), want); n != 1 {
				t.Errorf("%d columns: %q stands %d times, want once:\n%s", columns, want, n, screen)
			}
		}
	}
	columns = 28
	screen.narrow(columns)
	v.Tick(at(2))
	if text := screen.String(); !strings.Contains(text, "order  o… deadline in 1h59m\n") {
		t.Errorf("the header lacks the deadline on a narrow screen:\n%s", text)
	}
	if screen.strange != "" {
		t.Errorf("terminal view wrote %q", screen.strange)
	}
}

// What is told of a run that ended long ago does not look as if it happened now:
// a line says so, and the past follows only where it was asked for.
func TestAttachedStories(t *testing.T) {
	ended := order
	ended.Attached, ended.Status, ended.Ended = true, "succeeded", at(34)
	past := ended
	past.Past = true
	open := order
	open.Attached, open.Status, open.Past = true, "running", true
	for _, c := range []struct {
		name  string
		story render.Story
		head  string
		lines int
	}{
		{"ended", ended, "run o-1042 of workflow order has ended already: succeeded at 2026-03-14T10:00:34Z", 3},
		{"its past", past, "run o-1042 of workflow order has ended already: succeeded at 2026-03-14T10:00:34Z; this is what happened in it", 0},
		{"open", open, "attached to run o-1042 of workflow order, running; what has happened so far comes first", 0},
	} {
		t.Run(c.name, func(t *testing.T) {
			var out bytes.Buffer
			play(render.NewPlain(&out, exit), c.story, happy())
			lines := strings.Split(strings.TrimSpace(out.String()), "\n")
			if lines[0] != c.head {
				t.Errorf("first line %q, want %q", lines[0], c.head)
			}
			if c.lines > 0 && len(lines) != c.lines {
				t.Errorf("%d lines, want %d: the head, a warning and the end:\n%s", len(lines), c.lines, &out)
			}
			if tells := strings.Contains(out.String(), "started"); tells == (c.lines > 0) {
				t.Errorf("attempts are told: %v\n%s", tells, &out)
			}
			if !strings.HasSuffix(lines[len(lines)-1], "run succeeded (exit 0)") {
				t.Errorf("last line %q", lines[len(lines)-1])
			}
			screen := newScreen(100, 24)
			v := render.NewTerminal(screen, render.TerminalOptions{Size: func() (int, int) { return 100, 24 }, Exit: exit})
			play(v, c.story, happy())
			if head := strings.ToUpper(c.head[:1]) + c.head[1:] + "."; !strings.HasPrefix(screen.String(), head) {
				t.Errorf("the screen does not begin with %q:\n%s", head, screen)
			}
		})
	}
}

// Nothing an agent says reaches the screen or a log as a control character (T20).
func TestHostileText(t *testing.T) {
	var plain, stream bytes.Buffer
	play(render.NewPlain(&plain, exit), order, hostile())
	play(render.NewJSON(&stream, "0", exit, func() time.Time { return start }), order, hostile())
	for name, text := range map[string]string{"plain": plain.String(), "json": stream.String()} {
		for _, r := range text {
			if r != '\n' && (r < 0x20 || r == 0x7f || r == 0x202e) {
				t.Errorf("%s view lets %U through", name, r)
			}
		}
		if strings.Contains(text, "\nfake:") {
			t.Errorf("%s view lets a line be forged", name)
		}
	}
	screen := newScreen(200, 24)
	play(render.NewTerminal(screen, render.TerminalOptions{Size: func() (int, int) { return 200, 24 }}), order, hostile())
	if screen.strange != "" {
		t.Errorf("terminal view wrote %q", screen.strange)
	}
}

func TestSpans(t *testing.T) {
	for _, c := range []struct {
		d          time.Duration
		took, span string
	}{
		{0, "0.0s", "0s"},
		{-time.Second, "0.0s", "0s"},
		{200 * time.Millisecond, "0.2s", "200ms"},
		{1500 * time.Millisecond, "1.5s", "1.5s"},
		{5 * time.Second, "5.0s", "5s"},
		{59990 * time.Millisecond, "59s", "60s"},
		{101 * time.Second, "1m41s", "1m41s"},
		{2 * time.Hour, "2h", "2h"},
		{118 * time.Minute, "1h58m", "1h58m"},
		{24*time.Hour - time.Minute, "23h59m", "23h59m"},
		{36 * time.Hour, "36h", "36h"},
		{76 * time.Hour, "3d4h", "3d4h"},
	} {
		if got := render.Span(c.d); got != c.span {
			t.Errorf("Span(%v) = %q, want %q", c.d, got, c.span)
		}
		if got := render.Took(c.d); got != c.took && c.d != 59990*time.Millisecond {
			t.Errorf("Took(%v) = %q, want %q", c.d, got, c.took)
		}
	}
}

func TestRedact(t *testing.T) {
	for _, c := range []struct {
		name      string
		json      string
		sensitive []string
		secrets   []dsl.Secret
		want      string
	}{
		{"nothing to hide", `{"n":12345678901234567890}`, nil, nil, `{"n":12345678901234567890}`},
		{"all of it", `{"a":1}`, []string{""}, nil, `"(sensitive)"`},
		{"a part", `{"a":{"b/c":[1,2]},"n":12345678901234567890}`, []string{"/a/b~1c/1"}, nil, `{"a":{"b/c":[1,"(sensitive)"]},"n":12345678901234567890}`},
		{"a path that leads nowhere hides its parent", `{"a":{"b":1}}`, []string{"/a/x"}, nil, `{"a":"(sensitive)"}`},
		{"parent and child", `{"a":{"b":1}}`, []string{"/a", "/a/b"}, nil, `{"a":"(sensitive)"}`},
		{"secret", `{"t":null}`, nil, []dsl.Secret{{Path: "/t", Parts: []dsl.SecretPart{{Text: "Bearer "}, {Ref: "env:T"}}}}, `{"t":"(secret env:T)"}`},
	} {
		t.Run(c.name, func(t *testing.T) {
			got := render.Redact(dsl.NewValue([]byte(c.json), c.sensitive, c.secrets))
			if string(got) != c.want {
				t.Errorf("Redact = %s, want %s", got, c.want)
			}
		})
	}
}

// Clean replaces control characters, those above 0x7f too: a terminal reads 0x9b as the
// beginning of a command.
func TestClean(t *testing.T) {
	for _, r := range []rune{0x00, 0x1b, 0x7f, 0x80, 0x9b, 0x9f, 0x202e, 0x2067, 0xfeff} {
		if got := render.Clean("a" + string(r) + "b"); got != "a\ufffdb" {
			t.Errorf("%U: %q", r, got)
		}
	}
	if got := render.Clean("\u00a0é\n\t"); got != "\u00a0é  " {
		t.Errorf("%q", got)
	}
}

// An output of which a part is sensitive is hidden whole.
func TestOutputsHide(t *testing.T) {
	out, err := json.Marshal(render.Outputs([]story.NamedValue{
		{Name: "a", Value: dsl.NewValue([]byte(`{"x":"hunter2"}`), []string{"/x"}, nil)},
		{Name: "b", Sensitive: true, Value: dsl.NewValue([]byte(`"hunter2"`), nil, nil)},
		{Name: "c", Value: dsl.NewValue([]byte(`1`), nil, nil)},
	}))
	if want := `{"a":{"sensitive":true,"value":null},"b":{"sensitive":true,"value":null},"c":{"sensitive":false,"value":1}}`; err != nil || string(out) != want {
		t.Errorf("%s, %v; want %s", out, err, want)
	}
}

func TestLiteral(t *testing.T) {
	for _, c := range []struct{ json, want string }{
		{`"a\u001bb"`, `"a\u001bb"`},
		{`{"b":[1,2.50],"a b":null,"c":{}}`, `{ "a b" = null, b = [1, 2.50], c = {} }`},
		{`12345678901234567890`, `12345678901234567890`},
		{`"` + strings.Repeat("x", 80) + `"`, `"` + strings.Repeat("x", 80) + `"`},
		{`{"a":"` + strings.Repeat("x", 80) + `"}`, "{\n  a = \"" + strings.Repeat("x", 80) + "\"\n}"},
	} {
		if got := render.Literal([]byte(c.json), ""); got != c.want {
			t.Errorf("Literal(%s) = %s, want %s", c.json, got, c.want)
		}
	}
}

func TestTable(t *testing.T) {
	table := render.Table{Head: []string{"RUN", "STATE", ""}}
	table.Add("o-1", "running", "x")
	table.Add("\x1b[31mo-2", "ok")
	var out bytes.Buffer
	if err := table.Write(&out); err != nil {
		t.Fatal(err)
	}
	want := "RUN       STATE\no-1       running  x\n\ufffd[31mo-2  ok\n"
	if out.String() != want {
		t.Errorf("table:\n%q\nwant:\n%q", out.String(), want)
	}
}
