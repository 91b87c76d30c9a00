package dsl

import (
	"bytes"
	"encoding/json"
	"errors"
	"strings"
	"sync"
	"testing"
	"testing/fstest"

	"github.com/rogpeppe/go-internal/txtar"
)

// TestDigest: equal modules have equal digests; whatever changes the behaviour
// of a run changes the digest. S33: a run keeps the agents it began with.
func TestDigest(t *testing.T) {
	base := map[string]string{"a.hcl": "locals {\n  x = file(\"f\")\n  y = coalesce(env(\"REGION\"), \"none\")\n}\nworkflow \"w\" {\n  deadline = \"1h\"\n  step \"s\" {\n    action = agent.mock.call\n    input { value = \"${local.x}${local.y}\" }\n  }\n}\n", "f": "1"}
	digest := func(change func(files map[string]string, env map[string]string, agents map[string]AgentBinary)) string {
		t.Helper()
		files, env, agents := map[string]string{}, map[string]string{"REGION": "eu"}, testAgents()
		for k, v := range base {
			files[k] = v
		}
		if change != nil {
			change(files, env, agents)
		}
		fsys := fstest.MapFS{}
		for k, v := range files {
			fsys[k] = &fstest.MapFile{Data: []byte(v)}
		}
		m, diags := Parse(fsys, ParseOptions{Env: func(n string) (string, bool) { v, ok := env[n]; return v, ok }})
		def, more := Link(m, agents)
		if def == nil {
			t.Fatalf("%v %v", diags.Err(), more.Err())
		}
		if again, _ := Link(m, agents); !bytes.Equal(again.Encode(), def.Encode()) {
			t.Error("linking twice gave different bytes")
		}
		if def.Workflow("w").Digest != def.Digest() {
			t.Error("the workflow does not know its digest")
		}
		return def.Digest()
	}
	want := digest(nil)
	for name, change := range map[string]func(map[string]string, map[string]string, map[string]AgentBinary){
		"nothing":        func(f, e map[string]string, a map[string]AgentBinary) {},
		"other env":      func(f, e map[string]string, a map[string]AgentBinary) { e["OTHER"] = "x" },
		"other file":     func(f, e map[string]string, a map[string]AgentBinary) { f["g"] = "x" },
		"!source":        func(f, e map[string]string, a map[string]AgentBinary) { f["a.hcl"] += "\n" },
		"!file()":        func(f, e map[string]string, a map[string]AgentBinary) { f["f"] = "2" },
		"!env()":         func(f, e map[string]string, a map[string]AgentBinary) { e["REGION"] = "us" },
		"!env() not set": func(f, e map[string]string, a map[string]AgentBinary) { delete(e, "REGION") },
		"!agent version": func(f, e map[string]string, a map[string]AgentBinary) {
			b := a["mock"]
			b.Version = "2.0.0"
			a["mock"] = b
		},
		"!agent checksum": func(f, e map[string]string, a map[string]AgentBinary) {
			b := a["mock"]
			b.Checksum = "00"
			a["mock"] = b
		},
		"!agent schema": func(f, e map[string]string, a map[string]AgentBinary) {
			b := a["mock"]
			b.Schema.Doc = "changed"
			a["mock"] = b
		},
	} {
		if got := digest(change); (got == want) == strings.HasPrefix(name, "!") {
			t.Errorf("%s: digest %.8s, without it %.8s", name, got, want)
		}
	}
}

// TestDecodeNeedsNothing: a stored definition gives the same workflow with no
// file system, environment or agent at hand. S22: recovery needs only what is
// in the store.
func TestDecodeNeedsNothing(t *testing.T) {
	src := "engine { required_version = \">= 0.3\" }\nlocals {\n  x = file(\"f\")\n  y = env(\"REGION\")\n}\n" +
		"workflow \"w\" {\n  deadline = \"1h\"\n  step \"s\" {\n    action = agent.mock.call\n    input { value = \"${local.x}${local.y}${env(\"NO\") == null}\" }\n  }\n}\n"
	def, diags := parseAndLink(fstest.MapFS{"a.hcl": {Data: []byte(src)}, "f": {Data: []byte("text ")}})
	if def == nil {
		t.Fatal(diags.Err())
	}
	back, err := Decode(append([]byte(nil), def.Encode()...))
	if err != nil {
		t.Fatal(err)
	}
	in, err := back.Workflow("w").Steps[0].Input(&Scope{})
	if err != nil || string(in.JSON()) != `{"value":"text eutrue"}` {
		t.Errorf("input %s, %v", in.JSON(), err)
	}
}

// TestDecodeRefusesDamage: a stored definition that was changed is not used.
func TestDecodeRefusesDamage(t *testing.T) {
	def := linked(t, orderText(t))
	change := func(f func(*stored)) []byte {
		var s stored
		if err := json.Unmarshal(def.Encode(), &s); err != nil {
			t.Fatal(err)
		}
		f(&s)
		out, err := json.Marshal(s)
		if err != nil {
			t.Fatal(err)
		}
		return out
	}
	for name, data := range map[string][]byte{
		"empty":        nil,
		"not JSON":     []byte("x"),
		"cut":          def.Encode()[:len(def.Encode())/2],
		"newer format": change(func(s *stored) { s.Manifest.Format++ }),
		"changed blob": change(func(s *stored) {
			for k := range s.Blobs {
				s.Blobs[k] = append(s.Blobs[k], '#')
			}
		}),
		"missing blob": change(func(s *stored) { clear(s.Blobs) }),
	} {
		if got, err := Decode(data); got != nil || !errors.Is(err, ErrCorrupt) {
			t.Errorf("%s: %v, %v", name, got, err)
		}
	}
}

// TestConcurrentUse: one definition serves many runs at once.
func TestConcurrentUse(t *testing.T) {
	def := linked(t, orderText(t))
	wf := def.Workflow("order")
	vars := bindAll(t, wf, "order_id", "o", "email", "e", "items", `{ a = { qty = 1, price = 2 } }`)
	m, _ := Parse(fstest.MapFS{"order.hcl": {Data: []byte(orderText(t))}}, ParseOptions{})
	var wg sync.WaitGroup
	for range 8 {
		wg.Go(func() {
			for range 20 {
				scope := &Scope{Vars: vars, Memo: &Memo{}, Each: &EachItem{Key: "a", Value: jsonValue(`{"qty":1,"price":2}`)}}
				if _, err := wf.Steps[0].Input(scope); err != nil {
					t.Error(err)
				}
				if _, diags := Link(m, usedAgents(m)); diags.HasErrors() {
					t.Error(diags.Err())
				}
			}
		})
	}
	wg.Wait()
}

// TestJSONTwin: the JSON form and the native form evaluate alike.
func TestJSONTwin(t *testing.T) {
	def, diags := parseAndLink(fstest.MapFS{"main.hcl.json": {Data: []byte(archiveText(t, "testdata/valid/json.txtar"))}})
	if def == nil {
		t.Fatal(diags.Err())
	}
	wf := def.Workflow("w")
	scope := &Scope{Vars: bindAll(t, wf, "id", "ann"), Memo: &Memo{}}
	charge := stepNamed(t, wf, "charge")
	wantInput(t, charge, scope, `{"amount":2,"currency":"eur","email":"ann@example.com"}`)
	scope.Self = &Self{OutputKnown: true, Output: jsonValue(`{"charge_id":"c"}`)}
	if in, err := charge.Undo.Input(scope); err != nil || string(in.JSON()) != `{"charge_id":"c"}` {
		t.Errorf("undo %s, %v", in.JSON(), err)
	}
	reserve := stepNamed(t, wf, "reserve")
	if len(reserve.After) != 1 || reserve.After[0] != charge.Index {
		t.Errorf("reserve waits for %v", reserve.After)
	}
	each, err := reserve.ForEach(scope)
	if err != nil || len(each.Keys) != 1 {
		t.Fatalf("for_each %v, %v", each, err)
	}
	scope.Each = &EachItem{Key: each.Keys[0], Value: each.Values[0]}
	wantInput(t, reserve, scope, `{"qty":1,"sku":"a"}`)
	if st, err := reserve.Settings(scope); err != nil || st.Retry.MaxAttempts != 2 {
		t.Errorf("settings %+v, %v", st, err)
	}
	config, err := wf.Agents["payment"].Config(scope)
	if err != nil || len(config.Secrets()) != 1 {
		t.Errorf("config %s, %v", config.JSON(), err)
	}
}

// A definition stored before a rule was made is still read: its runs finish on
// what they began with.
func TestDecodeOlderDefinition(t *testing.T) {
	m, diags := Parse(archiveFS(txtar.Parse([]byte(`
-- main.hcl --
workflow "w" {
  deadline = "1h"
  variable "limits" { default = "none" }
  step "go" {
    pivot  = true
    action = agent.mock.call
    input { value = var.limits.cpu }
    compensate { action = agent.mock.call }
  }
}
`))), ParseOptions{})
	if diags.HasErrors() {
		t.Fatal(diags.Err())
	}
	if def, diags := Link(m, usedAgents(m)); def != nil || !diags.HasErrors() {
		t.Fatal("today's rules take it")
	}
	def := &Definition{module: m.m}
	if err := def.seal(usedAgents(m)); err != nil {
		t.Fatal(err)
	}
	back, err := Decode(def.Encode())
	if err != nil {
		t.Fatalf("an older definition: %v", err)
	}
	if back.Digest() != def.Digest() || back.Workflow("w").Steps[0].Undo == nil {
		t.Error("it came back changed")
	}
}

// TestKeysOfOlderGroups: a stored definition may have an idempotency key that is the same for all keys
// of a group. Its runs keep their keys.
func TestKeysOfOlderGroups(t *testing.T) {
	m, diags := Parse(archiveFS(txtar.Parse([]byte(`
-- main.hcl --
workflow "w" {
  deadline = "1h"
  group "order" {
    for_each = toset(["a", "b"])
    step "call" {
      action          = agent.mock.call
      compensation    = "none"
      idempotency_key = "fixed"
    }
  }
}
`))), ParseOptions{})
	if diags.HasErrors() {
		t.Fatal(diags.Err())
	}
	if def, diags := Link(m, usedAgents(m)); def != nil || !diags.HasErrors() {
		t.Fatal("today's rules take it")
	}
	def := &Definition{module: m.m}
	if err := def.seal(usedAgents(m)); err != nil {
		t.Fatal(err)
	}
	back, err := Decode(def.Encode())
	if err != nil {
		t.Fatalf("an older definition: %v", err)
	}
	key, err := back.Workflow("w.order").Steps[0].IdempotencyKey(&Scope{})
	if err != nil || key != "fixed" {
		t.Errorf("key %q, %v", key, err)
	}
}

// TestOlderRules: a stored definition stays valid, although today's rules refuse the text.
func TestOlderRules(t *testing.T) {
	for name, body := range map[string]string{
		"a catch after the pivot that holds all codes in some runs only": `
  variable "all" { default = true }
  step "go" {
    action = agent.mock.call
    pivot  = true
  }
  step "tell" {
    action     = agent.mock.call
    depends_on = [step.go]
    catch { errors = [var.all ? "*" : "timeout"] }
  }`,
		"an output with a sensitive value behind brackets": `
  step "s" {
    for_each = { k = 1 }
    action   = agent.inventory.reserve
    input { sku = "a" }
  }
  output "o" { value = step.s["k"]["output"]["token"] }`,
	} {
		m, diags := Parse(fstest.MapFS{"main.hcl": {Data: []byte("workflow \"w\" {\n  deadline = \"1h\"" + body + "\n}\n")}}, ParseOptions{})
		if diags.HasErrors() {
			t.Fatalf("%s: %v", name, diags.Err())
		}
		if def, diags := Link(m, usedAgents(m)); def != nil || !diags.HasErrors() {
			t.Errorf("%s: today's rules take it", name)
		}
		def := &Definition{module: m.m}
		if err := def.seal(usedAgents(m)); err != nil {
			t.Fatal(err)
		}
		if _, err := Decode(def.Encode()); err != nil {
			t.Errorf("%s: %v", name, err)
		}
	}
}
