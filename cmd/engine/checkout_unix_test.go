//go:build unix

package main

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/saga-engine/engine/engine/agents"
)

// A checkout brings a program that calls itself an agent: no command runs it
// before `engine init` has locked it, and then a warning names what it displaces.
func TestAgentsOfACheckout(t *testing.T) {
	dir := t.TempDir()
	write := func(path, text string, mode os.FileMode) string {
		t.Helper()
		path = filepath.Join(dir, filepath.FromSlash(path))
		if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(text), mode); err != nil {
			t.Fatal(err)
		}
		return path
	}
	flow := func(agent string) string {
		return fmt.Sprintf("agent %q {}\nworkflow \"w\" {\n  deadline = \"1m\"\n  step \"s\" {\n    action       = agent.%s.call\n    compensation = \"none\"\n  }\n}\n", agent, agent)
	}
	ran := filepath.Join(dir, "ran")
	program := func(name string) string {
		return write(".engine/agents/"+name+"/9.0.0/"+agents.Platform()+"/engine-agent-"+name, fmt.Sprintf(
			"#!/bin/sh\necho \"$@\" >> '%s'\necho '{\"name\":%q,\"version\":\"9.0.0\",\"protocol_versions\":[1],\"actions\":{\"call\":{}}}'\n", ran, name), 0o700)
	}
	displaces, alone := program("mock"), program("stray")
	t.Setenv("ENGINE_PLUGIN_DIR", os.Getenv(envAgents))
	t.Setenv("ENGINE_DSN", "")
	t.Setenv("XDG_CACHE_HOME", filepath.Join(dir, "cache"))
	engine := func(want int, args ...string) (out, errs string) {
		t.Helper()
		code, out, errs := command(t, append([]string{"--chdir", dir}, args...)...)
		if code != want {
			t.Errorf("%v: exit code %d, want %d\n%s%s", args, code, want, out, errs)
		}
		return out, errs
	}
	untouched := func() {
		t.Helper()
		if data, err := os.ReadFile(ran); err == nil {
			t.Fatalf("the program of the checkout was run: %s", data)
		}
	}

	write("w.hcl", flow("mock"), 0o600)
	for _, args := range [][]string{{"validate", "."}, {"plan", "."}, {"graph", "."}, {"apply", ".", "--run-id", "r"}} {
		_, errs := engine(0, args...)
		if !strings.Contains(errs, `Agent "mock" of the module is not used`) || !strings.Contains(errs, displaces) || !strings.Contains(errs, "engine init") {
			t.Errorf("%v does not name the file that it does not run, and what to do:\n%s", args, errs)
		}
	}
	write("w.hcl", flow("stray"), 0o600)
	for _, args := range [][]string{{"validate", "."}, {"plan", "."}, {"graph", "."}, {"apply", "."}, {"apply", ".", "--detach"}} {
		_, errs := engine(1, args...)
		if !strings.Contains(errs, `Agent "stray" is not locked`) || !strings.Contains(errs, alone) || !strings.Contains(errs, "engine init") {
			t.Errorf("%v does not say that the file is not locked, and what to do:\n%s", args, errs)
		}
	}
	if out, _ := engine(0, "agents", "list"); !strings.Contains(out, "not locked: "+displaces) {
		t.Errorf("agents list does not show the unlocked file:\n%s", out)
	}
	engine(1, "agents", "schema", "stray")
	engine(0, "__complete", "apply", ".", "--workflow", "")
	untouched()

	// A lock file that names another file does not help.
	write(".engine.lock.hcl", fmt.Sprintf("agent \"stray\" {\n  version = \"9.0.0\"\n  hashes  = [\"%s:sha256:%s\"]\n}\n", agents.Platform(), strings.Repeat("ab", 32)), 0o600)
	if _, errs := engine(1, "validate", "."); !strings.Contains(errs, "has changed since it was locked") {
		t.Errorf("validate says\n%s", errs)
	}
	engine(1, "agents", "schema", "stray")
	untouched()
	if err := os.Remove(filepath.Join(dir, ".engine.lock.hcl")); err != nil {
		t.Fatal(err)
	}

	write("w.hcl", flow("mock"), 0o600)
	engine(0, "init", ".")
	if _, err := os.Stat(ran); err != nil {
		t.Errorf("init did not look at the module's agent: %v", err)
	}
	if _, errs := engine(0, "validate", "."); !strings.Contains(errs, `Agent "mock" comes from the module`) || !strings.Contains(errs, displaces) {
		t.Errorf("no warning names the agent that displaces an installed one:\n%s", errs)
	}
	engine(0, "agents", "schema", "mock")
}
