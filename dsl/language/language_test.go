package language_test

import (
	"encoding/json"
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strings"
	"testing"
	"testing/fstest"

	"github.com/saga-engine/engine/dsl"
	"github.com/saga-engine/engine/dsl/diag"
	calls "github.com/saga-engine/engine/dsl/internal/functions"
	"github.com/saga-engine/engine/dsl/language"
)

// The types below are the JSON of a Language as another program would read it.
type schemaBlock struct {
	Name       string   `json:"name"`
	Labels     []string `json:"labels"`
	Repeatable bool     `json:"repeatable"`
	Free       bool     `json:"free_attributes"`
	Attributes []struct {
		Name     string `json:"name"`
		Required bool   `json:"required"`
		Literal  bool   `json:"literal"`
		Type     bool   `json:"type_constraint"`
	} `json:"attributes"`
	Blocks []schemaBlock `json:"blocks"`
	Nested bool          `json:"nested"`
}

type schemaReference struct {
	Root       string            `json:"root"`
	Form       string            `json:"form"`
	KeyedForm  string            `json:"keyed_form"`
	Attributes []schemaReference `json:"attributes"`
}

type schemaFunction struct {
	Name       string                        `json:"name"`
	Parameters []struct{ Name, Type string } `json:"parameters"`
	Variadic   *struct{ Name, Type string }  `json:"variadic_parameter"`
	Returns    string                        `json:"returns"`
}

type schemaLanguage struct {
	Version    string            `json:"language_version"`
	Blocks     []schemaBlock     `json:"blocks"`
	References []schemaReference `json:"references"`
	Functions  []schemaFunction  `json:"functions"`
}

func describedLanguage(t *testing.T) (out schemaLanguage) {
	t.Helper()
	raw, err := json.Marshal(language.Describe())
	if err != nil {
		t.Fatal(err)
	}
	if err := json.Unmarshal(raw, &out); err != nil {
		t.Fatal(err)
	}
	return out
}

// A schemaPlace is a block with the blocks around it.
type schemaPlace struct {
	path string // such as workflow/step/retry; "" = the top level of a file
	schemaBlock
	around []schemaBlock // the outermost block first, and at last the block itself
}

// places returns the top level and all blocks of the language.
func (l schemaLanguage) places() []schemaPlace {
	all := []schemaPlace{{schemaBlock: schemaBlock{Blocks: l.Blocks}}}
	for i := 0; i < len(all); i++ {
		if outer := all[i].around; all[i].Nested {
			all[i].Blocks = outer[len(outer)-2].Blocks // a nested block may have the same inner blocks
			continue
		}
		for _, b := range all[i].Blocks {
			all = append(all, schemaPlace{
				strings.TrimPrefix(all[i].path+"/"+b.Name, "/"), b, append(slices.Clone(all[i].around), b),
			})
		}
	}
	return all
}

// with returns a file with the block, in which these lines stand.
func (p schemaPlace) with(lines string) string {
	for _, b := range slices.Backward(p.around) {
		lines = b.head("x") + " {\n" + lines + "\n}"
	}
	return lines
}

func (b schemaBlock) head(label string) string {
	return b.Name + strings.Repeat(fmt.Sprintf(" %q", label), len(b.Labels))
}

// summaries parses a file and returns the details of its errors, by their summary.
func summaries(text string) map[string][]string {
	_, diags := dsl.Parse(fstest.MapFS{"main.hcl": {Data: []byte(text)}}, dsl.ParseOptions{})
	out := map[string][]string{}
	for _, d := range diags {
		if d.Severity == diag.SeverityError {
			out[d.Summary] = append(out[d.Summary], d.Detail)
		}
	}
	return out
}

// quotedNames returns the first quoted name of each text, sorted.
func quotedNames(texts []string) []string {
	out := []string{}
	for _, text := range texts {
		if m := regexp.MustCompile(`"([^"]+)"`).FindStringSubmatch(text); m != nil {
			out = append(out, m[1])
		}
	}
	slices.Sort(out)
	return slices.Compact(out)
}

// In each block the parser accepts the listed attributes and blocks, and no others.
func TestSchemaListsWhatBlocksMayHave(t *testing.T) {
	places := describedLanguage(t).places()
	attrs, blocks := map[string]bool{"nonsense": true}, map[string]bool{"nonsense": true}
	for _, p := range places {
		for _, a := range p.Attributes {
			attrs[a.Name] = true
		}
		for _, b := range p.Blocks {
			blocks[b.Name] = true
		}
	}
	if len(places) < 20 || len(attrs) < 50 {
		t.Fatalf("the schema has %d blocks and %d names of attributes", len(places), len(attrs))
	}
	for _, p := range places {
		t.Run("block "+p.path, func(t *testing.T) {
			var lines, inner strings.Builder
			others, otherBlocks := maps.Clone(attrs), maps.Clone(blocks)
			for name := range attrs {
				fmt.Fprintf(&lines, "%s = 1\n", name)
			}
			for name := range blocks {
				fmt.Fprintf(&inner, "%s {}\n", name)
			}
			for _, a := range p.Attributes {
				delete(others, a.Name)
			}
			for _, b := range p.Blocks {
				delete(otherBlocks, b.Name)
			}
			if p.Free {
				others, otherBlocks = nil, nil
				if summaries(p.with("nonsense {}"))[`Unexpected "nonsense" block`] == nil {
					t.Error("it takes a block, but its attributes are free")
				}
			}
			found := summaries(p.with(lines.String()))
			if got, want := quotedNames(found["Unsupported argument"]), sortedNames(others); !slices.Equal(got, want) {
				t.Errorf("the parser refuses the attributes\n%q, want\n%q", got, want)
			}
			if p.Free {
				return
			}
			found = summaries(p.with(inner.String()))
			if got, want := quotedNames(found["Unsupported block type"]), sortedNames(otherBlocks); !slices.Equal(got, want) {
				t.Errorf("the parser refuses the blocks\n%q, want\n%q", got, want)
			}
		})
	}
}

func sortedNames(m map[string]bool) []string {
	return append([]string{}, slices.Sorted(maps.Keys(m))...)
}

// What the schema says about each attribute is what the parser does: whether it is required,
// literal, or a type.
func TestSchemaSaysWhatAttributesAre(t *testing.T) {
	for _, p := range describedLanguage(t).places() {
		required := []string{}
		for _, a := range p.Attributes {
			if a.Required {
				required = append(required, a.Name)
			}
			call := summaries(p.with(a.Name + ` = upper("x")`))
			if got := len(call["Not a literal value"]) > 0; got != a.Literal && !a.Type {
				t.Errorf("%s.%s: a call is refused: %v, and the schema says literal: %v", p.path, a.Name, got, a.Literal)
			}
			_, got := summaries(p.with(a.Name + ` = nonsense`))["Invalid type specification"]
			if got != a.Type || a.Type && !a.Literal {
				t.Errorf("%s.%s is read as a type: %v, and the schema says %v", p.path, a.Name, got, a.Type)
			}
		}
		slices.Sort(required)
		missing := slices.DeleteFunc(summaries(p.with(""))["Missing required argument"], func(detail string) bool {
			return !strings.HasSuffix(detail, "is required, but no definition was found.") // a rule, not the table
		})
		if got := quotedNames(missing); !slices.Equal(got, required) && !missingAbove(p, got, required) {
			t.Errorf("%s: the parser misses %q, and the schema requires %q", p.path, got, required)
		}
	}
}

// missingAbove reports whether the missing arguments are those of the block and of the blocks
// around it.
func missingAbove(p schemaPlace, missing, required []string) bool {
	for _, b := range p.around[:max(0, len(p.around)-1)] {
		for _, a := range b.Attributes {
			if a.Required {
				required = append(required, a.Name)
			}
		}
	}
	slices.Sort(required)
	return slices.Equal(missing, slices.Compact(required))
}

// A block that is not repeatable may stand once, and a block has the listed labels.
func TestSchemaSaysHowOftenBlocksMayBeThere(t *testing.T) {
	for _, p := range describedLanguage(t).places() {
		for _, b := range p.Blocks {
			found := summaries(p.with(b.head("a") + " {}\n" + b.head("b") + " {}"))
			if got := found["Duplicate "+b.Name+" block"] == nil; got != b.Repeatable {
				t.Errorf("%s/%s: the parser accepts two: %v, and the schema says repeatable: %v", p.path, b.Name, got, b.Repeatable)
			}
			found = summaries(p.with(b.Name + " {}"))
			if got := found["Missing "+"name for "+b.Name] != nil; got != (len(b.Labels) > 0) {
				t.Errorf("%s/%s: the parser misses a label: %v, and the schema has %q", p.path, b.Name, got, b.Labels)
			}
		}
	}
}

// The schema has every function with its number of parameters. Without the last parameter, and
// with one more, a call is refused.
func TestSchemaListsFunctions(t *testing.T) {
	functions := describedLanguage(t).Functions
	local := func(expr string) map[string][]string { return summaries("locals {\n  x = " + expr + "\n}") }
	names := map[string]schemaFunction{}
	for _, f := range functions {
		names[f.Name] = f
		if found := local(f.Name + "()"); found["Call to unknown function"] != nil {
			t.Errorf("%s: the parser does not know it", f.Name)
		}
		if _, read := calls.Literal[f.Name]; read || f.Name == "secret" {
			continue // the engine reads their arguments from the source
		}
		args := slices.Repeat([]string{"null"}, len(f.Parameters)+1)
		if n := len(f.Parameters); n > 0 {
			if found := local(f.Name + "(" + strings.Join(args[:n-1], ", ") + ")"); found["Not enough function arguments"] == nil {
				t.Errorf("%s takes %d arguments, and the schema has %d parameters", f.Name, n-1, n)
			}
		}
		found := local(f.Name + "(" + strings.Join(args, ", ") + ")")
		if more := found["Too many function arguments"] == nil; more != (f.Variadic != nil) {
			t.Errorf("%s takes more than %d arguments: %v, and the schema says %v", f.Name, len(f.Parameters), more, f.Variadic)
		}
	}
	for _, name := range []string{"timestamp", "uuid", "nonsense"} {
		if _, ok := names[name]; ok || local(name + "()")["Call to unknown function"] == nil {
			t.Errorf("%s is a function", name)
		}
	}
	for name, want := range map[string]string{
		"substr": "(str string, offset number, length number) string", "format": "(format string, args any...) string",
		"env": "(name string) string", "try": "(expressions any...) any", "sum": "(list any) any", "length": "(value any) number",
		"join": "(separator string, lists list(string)...) string",
	} {
		if got := names[name].text(); got != want {
			t.Errorf("%s%s, want %s", name, got, want)
		}
	}
}

func (f schemaFunction) text() string {
	var parts []string
	for _, p := range f.Parameters {
		parts = append(parts, p.Name+" "+p.Type)
	}
	if f.Variadic != nil {
		parts = append(parts, f.Variadic.Name+" "+f.Variadic.Type+"...")
	}
	return "(" + strings.Join(parts, ", ") + ") " + f.Returns
}

// The parser accepts each listed reference, and no other attribute of the same root.
func TestSchemaListsReferences(t *testing.T) {
	var texts, calls []string
	for _, r := range describedLanguage(t).References {
		if r.Root == "agent" || r.Root == "library" || r.Root == "workflow" {
			calls = append(calls, r.Form) // only the arguments `action` and `workflow` have it
			continue
		}
		prefix := strings.Replace(r.Form, "ATTRIBUTE", "", 1)
		if len(r.Attributes) == 0 {
			texts = append(texts, r.Form)
		}
		for _, a := range r.Attributes {
			texts = append(texts, prefix+a.Root)
			if r.KeyedForm != "" {
				texts = append(texts, strings.Replace(r.KeyedForm, "ATTRIBUTE", a.Root, 1))
			}
		}
		if len(r.Attributes) > 0 && referenceErrors(prefix + "nonsense")["Unsupported attribute"] == nil {
			t.Errorf("%snonsense is accepted", prefix)
		}
	}
	if want := []string{"agent.NAME.ACTION", "library.NAME.agent.NAME.ACTION", "library.NAME.workflow.NAME", "workflow.NAME"}; !slices.Equal(calls, want) {
		t.Errorf("the arguments action and workflow have %q, want %q", calls, want)
	}
	for _, want := range []string{"var.NAME", "local.NAME", "step.NAME.error", "step.NAME[KEY].ended_at", "group.NAME[KEY].output", "run.started_at", "self.output", "failure.code", "each.key", "args.NAME"} {
		if !slices.Contains(texts, want) {
			t.Errorf("the schema lacks %s", want)
		}
	}
	for _, text := range texts {
		if found := referenceErrors(text); len(found) > 0 {
			t.Errorf("%s: %v", text, found)
		}
	}
	for _, root := range []string{"path", "data", "nonsense"} {
		if referenceErrors(root + ".NAME")["Unknown reference"] == nil {
			t.Errorf("%s is a root of references", root)
		}
	}
}

// referenceErrors parses a workflow with a reference in the undo of a step, or run.status in a
// notify block, which is its only place. NAME is the name of a
// variable, a local value and a step, and with a key it is a step with for_each.
func referenceErrors(reference string) map[string][]string {
	if strings.HasPrefix(reference, "args.") {
		return summaries(`
agent "echo" {
  action "a" {
    uses      = "call"
    arguments = object({ NAME = string })
    input { value = ` + reference + ` }
  }
}
`)
	}
	if strings.HasPrefix(reference, "event.") {
		return summaries(`
workflow "w" {
  variable "NAME" { default = "" }
  on_event "placed" { variables = { NAME = ` + reference + ` } }
  step "NAME" { action = agent.echo.call }
}
`)
	}
	if keyed := strings.Replace(reference, "NAME[KEY]", `KEYED["k"]`, 1); keyed != reference {
		reference = keyed
	}
	if strings.HasPrefix(reference, "self.error") {
		return summaries(`
workflow "w" {
  step "s" {
    action = agent.echo.call
    catch {
      errors = ["*"]
      output = { x = ` + reference + ` }
    }
  }
}
`)
	}
	announced := "1"
	if reference == "run.status" {
		reference, announced = announced, reference
	}
	if group, ok := strings.CutPrefix(reference, "group."); ok {
		reference = "group.IN_" + group
	}
	return summaries(`
workflow "w" {
  variable "NAME" { type = string }
  locals { NAME = 1 }
  step "NAME" {
    action = agent.echo.call
    repeat {
      max_iterations = 2
      collect        = 1
    }
  }
  step "KEYED" {
    action   = agent.echo.call
    for_each = toset(["k"])
    repeat {
      max_iterations = 2
      collect        = 1
    }
  }
  group "IN_NAME" {
    step "inner" { action = agent.echo.call }
  }
  group "IN_KEYED" {
    for_each = toset(["k"])
    step "inner" { action = agent.echo.call }
  }
  step "s" {
    action     = agent.echo.call
    for_each   = toset(["k"])
    depends_on = [step.NAME, step.KEYED, group.IN_NAME, group.IN_KEYED]
    repeat {
      max_iterations = 2
      collect        = 1
    }
    compensate {
      action = agent.echo.call
      input { x = ` + reference + ` }
    }
  }
  notify {
    on     = ["failed"]
    action = agent.echo.call
    input { x = ` + announced + ` }
  }
}`)
}
