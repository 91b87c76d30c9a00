package dsl_test

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/saga-engine/engine/dsl"
)

// TestStoredDefinitions: a definition that was stored comes back with the same digest, the
// same bytes and the same meaning, from nothing but its bytes.
func TestStoredDefinitions(t *testing.T) {
	modules := map[string]files{
		"files and the environment": {
			"main.hcl": workflow("output \"o\" { value = [file(\"notes.txt\"), env(\"REGION\"), env(\"NOT_SET\")] }\n" + step("s", "")), "notes.txt": "grüße\n",
			"more.hcl": "variable \"v\" { default = \"x\" }\n",
		},
		"an engine of a later version": {"main.hcl": "engine { required_version = \">= 0.1\" }\n" + workflow(step("s", "input { value = 1e400 }"))},
	}
	for _, tt := range twins() {
		modules[tt.name] = files{"main.hcl": tt.hcl}
		modules[tt.name+" as JSON"] = files{"main.hcl.json": tt.json}
	}
	for name, f := range modules {
		t.Run(name, func(t *testing.T) {
			def := linked(t, f)
			stored := bytes.Clone(def.Encode())
			back, err := dsl.Decode(stored)
			if err != nil {
				t.Fatal(err)
			}
			if back.Digest() != def.Digest() || !bytes.Equal(back.Encode(), def.Encode()) || len(def.Digest()) != 64 {
				t.Errorf("digest %s became %s", def.Digest(), back.Digest())
			}
			if !slices.Equal(back.Names(), def.Names()) || back.Workflow("w").Digest != def.Digest() || len(back.Warnings) != len(def.Warnings) {
				t.Errorf("names %v, warnings %v", back.Names(), back.Warnings)
			}
			if len(back.Workflow("w").Variables) == 0 || variableNames(back) == variableNames(def) {
				wantSameText(t, describeWorkflow(t, back.Workflow("w")), describeWorkflow(t, def.Workflow("w")))
			} else {
				t.Errorf("variables %s, want %s", variableNames(back), variableNames(def))
			}
			for file, src := range def.Sources() {
				if !bytes.Equal(back.Sources()[file], src) {
					t.Errorf("source %s has changed", file)
				}
			}
		})
	}
}

func variableNames(d *dsl.Definition) string {
	var out []string
	for _, v := range d.Workflow("w").Variables {
		out = append(out, v.Name)
	}
	return strings.Join(out, " ")
}

// TestDigests: the digest is that of the text, the files and variables that were read, and
// the agents. It does not depend on the order of things that have none, nor on what was
// not read.
func TestDigests(t *testing.T) {
	base := func() (files, map[string]string, map[string]dsl.AgentBinary) {
		return files{"a.hcl": workflow("locals { x = [file(\"f\"), env(\"E\"), env(\"N\")] }\n" + step("s", "")), "b.hcl": "variable \"v\" { default = 1 }\n", "f": "1", "g": "1"}, map[string]string{"E": "1"}, agents()
	}
	digest := func(change func(f files, env map[string]string, bins map[string]dsl.AgentBinary), o dsl.ParseOptions) string {
		f, env, bins := base()
		change(f, env, bins)
		o.Env = func(n string) (string, bool) { v, ok := env[n]; return v, ok }
		def, diags := checkWith(f, o, bins)
		if def == nil {
			t.Fatal(diags.Err())
		}
		return def.Digest()
	}
	nothing := func(files, map[string]string, map[string]dsl.AgentBinary) {}
	want := digest(nothing, dsl.ParseOptions{})
	for name, change := range map[string]func(files, map[string]string, map[string]dsl.AgentBinary){
		"nothing":                     nothing,
		"a file that is not read":     func(f files, _ map[string]string, _ map[string]dsl.AgentBinary) { f["g"] = "2" },
		"values beside it":            func(f files, _ map[string]string, _ map[string]dsl.AgentBinary) { f["x.auto.vars.hcl"] = "v = 2\n" },
		"a variable that is not read": func(_ files, e map[string]string, _ map[string]dsl.AgentBinary) { e["X"] = "2" },
		"an agent that is not used":   func(_ files, _ map[string]string, b map[string]dsl.AgentBinary) { delete(b, "shop") },
	} {
		if got := digest(change, dsl.ParseOptions{Dir: "elsewhere", EngineVersion: "9.9.9"}); got != want {
			t.Errorf("%s changes the digest", name)
		}
	}
	seen := map[string]string{want: "nothing"}
	for name, change := range map[string]func(files, map[string]string, map[string]dsl.AgentBinary){
		"a blank": func(f files, _ map[string]string, _ map[string]dsl.AgentBinary) { f["a.hcl"] += "\n" },
		"a name of a file": func(f files, _ map[string]string, _ map[string]dsl.AgentBinary) {
			f["c.hcl"] = f["b.hcl"]
			delete(f, "b.hcl")
		},
		"one file more":           func(f files, _ map[string]string, _ map[string]dsl.AgentBinary) { f["c.hcl"] = "\n" },
		"a file that is read":     func(f files, _ map[string]string, _ map[string]dsl.AgentBinary) { f["f"] = "2" },
		"a variable that is read": func(_ files, e map[string]string, _ map[string]dsl.AgentBinary) { e["E"] = "2" },
		"an empty variable":       func(_ files, e map[string]string, _ map[string]dsl.AgentBinary) { e["N"] = "" },
		"a variable that is gone": func(_ files, e map[string]string, _ map[string]dsl.AgentBinary) { delete(e, "E") },
		"a version of an agent": func(_ files, _ map[string]string, b map[string]dsl.AgentBinary) {
			bin := b["echo"]
			bin.Version = "1.0.1"
			b["echo"] = bin
		},
		"a checksum of an agent": func(_ files, _ map[string]string, b map[string]dsl.AgentBinary) {
			bin := b["echo"]
			bin.Checksum = "ab"
			b["echo"] = bin
		},
		"a schema of an agent": func(_ files, _ map[string]string, b map[string]dsl.AgentBinary) {
			bin := b["echo"]
			bin.Schema.Doc = "x"
			b["echo"] = bin
		},
	} {
		got := digest(change, dsl.ParseOptions{})
		if other, taken := seen[got]; taken {
			t.Errorf("%s has the digest of %s", name, other)
		}
		seen[got] = name
	}
	one, _ := dsl.Parse(files{"a.hcl": workflow(step("s", ""))}.fs(), dsl.ParseOptions{File: "a.hcl"})
	all, _ := dsl.Parse(files{"a.hcl": workflow(step("s", ""))}.fs(), dsl.ParseOptions{})
	a, _ := dsl.Link(one, agents())
	b, _ := dsl.Link(all, agents())
	if a.Digest() == b.Digest() {
		t.Error("a file and a directory with one file have one digest")
	}
}

// TestDamagedDefinitions: data that is not a definition, or no longer whole, is refused
// with ErrCorrupt; it never becomes another definition.
func TestDamagedDefinitions(t *testing.T) {
	def := linked(t, files{"a.hcl": workflow("output \"o\" { value = [file(\"f\"), env(\"REGION\")] }\n" + step("s", "")), "f": "text"})
	whole := def.Encode()
	change := func(edit func(m map[string]any)) []byte {
		var m map[string]any
		if err := json.Unmarshal(whole, &m); err != nil {
			t.Fatal(err)
		}
		edit(m)
		out, err := json.Marshal(m)
		if err != nil {
			t.Fatal(err)
		}
		return out
	}
	manifest := func(m map[string]any) map[string]any { return m["manifest"].(map[string]any) }
	other := strings.Repeat("0", 64)
	for name, data := range map[string][]byte{
		"nothing": nil, "not JSON": []byte("{"), "a list": []byte("[]"), "an empty object": []byte("{}"), "half of it": whole[:len(whole)/2],
		"a later format":            change(func(m map[string]any) { manifest(m)["format"] = 2 }),
		"no blobs":                  change(func(m map[string]any) { m["blobs"] = map[string]any{} }),
		"a blob with another name":  change(func(m map[string]any) { m["blobs"].(map[string]any)[other] = "eA==" }),
		"a source that is missing":  change(func(m map[string]any) { manifest(m)["files"] = map[string]any{"a.hcl": other} }),
		"a read that is missing":    change(func(m map[string]any) { manifest(m)["reads"] = map[string]any{"f": other} }),
		"an answer that is missing": change(func(m map[string]any) { manifest(m)["env"] = map[string]any{"REGION": other} }),
		"a schema that is missing": change(func(m map[string]any) {
			manifest(m)["agents"].(map[string]any)["echo"].(map[string]any)["schema"] = other
		}),
		"a schema that is none": change(func(m map[string]any) { // the source text is no schema
			manifest(m)["agents"].(map[string]any)["echo"].(map[string]any)["schema"] = manifest(m)["files"].(map[string]any)["a.hcl"]
		}),
	} {
		got, err := dsl.Decode(data)
		if got != nil || !errors.Is(err, dsl.ErrCorrupt) {
			t.Errorf("%s: %v, %v", name, got, err)
		}
	}
	for name, data := range map[string][]byte{
		"no agents":                 change(func(m map[string]any) { manifest(m)["agents"] = map[string]any{} }),
		"a read that is not listed": change(func(m map[string]any) { delete(manifest(m), "reads") }),
	} {
		if got, err := dsl.Decode(data); got != nil || err == nil {
			t.Errorf("%s: %v, %v", name, got, err)
		}
	}
	for i := 0; i < len(whole); i += 97 { // one byte is another one
		data := bytes.Clone(whole)
		data[i] ^= 1
		if got, err := dsl.Decode(data); err == nil && got.Digest() == def.Digest() && !bytes.Equal(got.Encode(), whole) {
			t.Errorf("with byte %d changed it is a definition with the same digest and other bytes", i)
		}
	}
}

// TestLinkNeedsNoErrors: what had errors in Parse, or has some in Link, is no definition. A
// second Link of one module is independent of the first.
func TestLinkNeedsNoErrors(t *testing.T) {
	m, diags := dsl.Parse(files{"a.hcl": workflow(step("s", "timeot = 1"))}.fs(), dsl.ParseOptions{})
	if !diags.HasErrors() {
		t.Fatal("the mistake was not found")
	}
	if def, more := dsl.Link(m, agents()); def != nil || more.HasErrors() {
		t.Errorf("%v, %v: errors of Parse are not repeated", def, more)
	}
	m, diags = dsl.Parse(files{"a.hcl": workflow(step("s", "input { valu = 1 }"))}.fs(), dsl.ParseOptions{})
	if diags.HasErrors() {
		t.Fatal(diags.Err())
	}
	if def, more := dsl.Link(m, agents()); def != nil || len(more.Errors()) != 1 {
		t.Errorf("%v, %v", def, more)
	}
	m, _ = dsl.Parse(files{"a.hcl": workflow(step("s", ""))}.fs(), dsl.ParseOptions{})
	first, _ := dsl.Link(m, agents())
	bins := agents()
	bin := bins["echo"]
	bin.Version = "2.0.0"
	bins["echo"] = bin
	second, _ := dsl.Link(m, bins)
	again, _ := dsl.Link(m, agents())
	if first.Digest() == second.Digest() || first.Digest() != again.Digest() || !bytes.Equal(first.Encode(), again.Encode()) {
		t.Errorf("digests %.8s %.8s %.8s", first.Digest(), second.Digest(), again.Digest())
	}
	if first.Workflow("w").Agents["echo"].Version != "1.0.0" || second.Workflow("w").Agents["echo"].Version != "2.0.0" {
		t.Error("two links share their agents")
	}
}

// TestManyErrors: a check ends after 200 errors and says so.
func TestManyErrors(t *testing.T) {
	var body strings.Builder
	for i := range 150 {
		fmt.Fprintf(&body, "output \"o%d\" { value = [var.a%d, var.b%d] }\n", i, i, i)
	}
	_, diags := dsl.Parse(files{"a.hcl": workflow(step("s", "") + body.String())}.fs(), dsl.ParseOptions{})
	last := about(diags, "Too many errors")
	if len(diags.Errors()) != 201 || len(last) != 1 || last[0].Detail != "The check ended after 200 errors. There may be more: mend these first." {
		t.Errorf("%d errors, %v", len(diags.Errors()), last)
	}
	m, diags := dsl.Parse(files{"a.hcl": workflow(step("s", "") + strings.Join(strings.SplitAfter(body.String(), "\n")[:50], ""))}.fs(), dsl.ParseOptions{})
	if len(diags.Errors()) != 100 || len(about(diags, "Too many errors")) != 0 {
		t.Errorf("%d errors", len(diags.Errors()))
	}
	if def, _ := dsl.Link(m, agents()); def != nil {
		t.Error("a module with errors was linked")
	}
}
