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
	"github.com/saga-engine/engine/engine/machine"
)

var update = flag.Bool("update", false, "rewrite golden files")

func exit(f machine.Fact) int {
	if f.Kind != machine.FactRunFinished && f.Kind != machine.FactRunParked {
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

// A run of more steps than the screen has lines: what has ended scrolls up
// once, in order, and no line is lost or drawn twice.
func TestTerminalScrolls(t *testing.T) {
	screen := newScreen(60, 8)
	v := render.NewTerminal(screen, render.TerminalOptions{Size: func() (int, int) { return 60, 8 }})
	v.Begin(render.Story{Run: "r", Workflow: "wide", Steps: []render.StepInfo{{Name: "s", Action: "mock.call"}}})
	const n = 40
	for i := range n {
		v.Facts(i+1, []machine.Fact{began(fmt.Sprintf(`s["%02d"]`, i), "mock.call", 1, 1, 0, 30, 0)})
	}
	for i := range n {
		v.Facts(n+i+1, []machine.Fact{{Kind: machine.FactStepFinished, At: at(1), Step: fmt.Sprintf(`s["%02d"]`, i), Status: "succeeded", Took: time.Second}})
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
