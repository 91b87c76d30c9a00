//go:build unix

package agents_test

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/saga-engine/engine/dsl"
	"github.com/saga-engine/engine/engine/agents"
	"github.com/saga-engine/engine/engine/invoke"
	"github.com/saga-engine/engine/sdk"
	"github.com/saga-engine/engine/sdk/plugin"
)

// TestBadBinaries: whatever is wrong with a binary, Check says it before a run
// starts, typed and with a hint, and a call is deferred with the reason.
func TestBadBinaries(t *testing.T) {
	good := description("bad", "1.0.0", 1)
	for name, tc := range map[string]struct {
		install func(t *testing.T, dir string)
		change  func(*invoke.AgentSpec)
		want    string
		reason  plugin.Reason
	}{
		"junk instead of a handshake": {install: func(t *testing.T, dir string) {
			script(t, filepath.Join(dir, "engine-agent-bad"), good, "echo 'Welcome to my agent!'; exec sleep 30")
		}, want: "Welcome to my agent!", reason: plugin.ReasonHandshake},
		"exit 0": {install: func(t *testing.T, dir string) {
			script(t, filepath.Join(dir, "engine-agent-bad"), good, "exit 0")
		}, want: "ended before its handshake", reason: plugin.ReasonExited},
		"exit 3 with a word": {install: func(t *testing.T, dir string) {
			script(t, filepath.Join(dir, "engine-agent-bad"), good, "echo 'no licence' >&2; exit 3")
		}, want: "no licence", reason: plugin.ReasonExited},
		"other protocol": {install: func(t *testing.T, dir string) {
			script(t, filepath.Join(dir, "engine-agent-bad"), good, "echo '1|99|unix|/nowhere|grpc|'; exec sleep 30")
		}, want: "speaks protocol 99", reason: plugin.ReasonProtocol},
		"other protocol by its description": {install: func(t *testing.T, dir string) {
			script(t, filepath.Join(dir, "engine-agent-bad"), description("bad", "1.0.0", 99), "exit 1")
		}, want: "speaks protocol 99", reason: plugin.ReasonProtocol},
		"no handshake at all": {install: func(t *testing.T, dir string) {
			script(t, filepath.Join(dir, "engine-agent-bad"), good, "exec sleep 30")
		}, want: "no handshake", reason: plugin.ReasonTimeout},
		"not executable": {install: func(t *testing.T, dir string) {
			path := script(t, filepath.Join(dir, "engine-agent-bad"), good, "")
			if err := os.Chmod(path, 0o644); err != nil {
				t.Fatal(err)
			}
		}, want: "not executable", reason: plugin.ReasonNotExecutable},
		"not a program": {install: func(t *testing.T, dir string) {
			if err := os.WriteFile(filepath.Join(dir, "engine-agent-bad"), []byte("\x00\x01\x02"), 0o755); err != nil {
				t.Fatal(err)
			}
		}, want: "engine-agent-bad", reason: plugin.ReasonNotExecutable},
	} {
		t.Run(name, func(t *testing.T) {
			dir := t.TempDir()
			tc.install(t, dir)
			w := newWorld(t, agents.Options{StartTimeout: 2 * time.Second, MinBackoff: time.Minute, MaxBackoff: time.Minute}, dir)
			spec := mock("bad", func(s *invoke.AgentSpec) { s.Plugin = "bad" })
			err := w.Check(t.Context(), spec)
			var start *plugin.StartError
			if !errors.As(err, &start) || start.Reason != tc.reason || !strings.Contains(err.Error(), tc.want) {
				t.Errorf("error=%v, want %s: %q", err, tc.reason, tc.want)
			}
			_, err = w.Invoke(t.Context(), call(spec, "go", `{}`))
			d := mustDefer(t, err)
			if left := time.Until(d.Until); left < 30*time.Second || left > time.Minute || !strings.Contains(d.Why, tc.want) {
				t.Errorf("deferred for %s: %s, want the pause and the reason", left, d.Why)
			}
			if slot := w.Slot(spec); slot.Free != 0 || !slot.Down || slot.Until.IsZero() || !strings.Contains(slot.Why, tc.want) {
				t.Errorf("slot=%+v, want none until the next start, and the reason", slot)
			}
		})
	}
}

// TestMissingAndChanged: a binary that is not there, or not in the pinned
// version, or not the pinned file.
func TestMissingAndChanged(t *testing.T) {
	dir := t.TempDir()
	data, err := os.ReadFile(mockBinary)
	if err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(dir, "engine-agent-mock")
	if err := os.WriteFile(path, data, 0o755); err != nil {
		t.Fatal(err)
	}
	catalog := agents.NewCatalog(agents.CatalogOptions{Search: agents.SearchOptions{PluginDirs: []string{dir}}})
	b, err := catalog.Find(t.Context(), "mock", "")
	if err != nil {
		t.Fatal(err)
	}
	pinned := func(s *invoke.AgentSpec) { s.Version, s.Checksum = b.Version, b.Checksum }
	w := newWorld(t, agents.Options{Catalog: catalog, MinBackoff: time.Millisecond, MaxBackoff: time.Millisecond})
	if reply := w.mustInvoke(call(mock("pinned", pinned), "echo", `{}`)); reply.Outcome != sdk.OutcomeResult {
		t.Errorf("reply=%+v", reply)
	}
	var missing *agents.NotFoundError
	if err := w.Check(t.Context(), mock("x", func(s *invoke.AgentSpec) { s.Plugin = "nothere" })); !errors.As(err, &missing) {
		t.Errorf("error=%v, want *NotFoundError", err)
	}
	var version *agents.VersionError
	if err := w.Check(t.Context(), mock("y", func(s *invoke.AgentSpec) { s.Version = "9.9.9" })); !errors.As(err, &version) {
		t.Errorf("error=%v, want *VersionError", err)
	}
	// The file changes between the description and the start: the start itself
	// must notice.
	stale := agents.NewCatalog(agents.CatalogOptions{Search: agents.SearchOptions{PluginDirs: []string{dir}}})
	if _, err := stale.Find(t.Context(), "mock", ""); err != nil {
		t.Fatal(err)
	}
	late := newWorld(t, agents.Options{Catalog: stale, MinBackoff: time.Millisecond, MaxBackoff: time.Millisecond})
	if err := os.WriteFile(path, append(data, 0), 0o755); err != nil && !errors.Is(err, syscall.ETXTBSY) {
		t.Fatal(err)
	}
	err = late.Check(t.Context(), mock("z", pinned))
	var start *plugin.StartError
	if !errors.As(err, &start) || start.Reason != plugin.ReasonChecksum {
		t.Errorf("error=%v, want a changed checksum", err)
	}
	var changed *agents.ChecksumError
	if err := w.Check(t.Context(), mock("z", pinned)); !errors.As(err, &changed) {
		t.Errorf("error=%v, want *ChecksumError", err)
	}
	_, err = w.Invoke(t.Context(), call(mock("z", pinned), "echo", `{}`))
	mustDefer(t, err)
	// And it heals when the file does.
	if err := os.WriteFile(path, data, 0o755); err != nil {
		t.Fatal(err)
	}
	if reply := w.eventually(call(mock("z", pinned), "echo", `{}`)); reply.Outcome != sdk.OutcomeResult {
		t.Errorf("reply=%+v", reply)
	}
}

// TestEnvironment: a process sees the variables its block allows and no other of
// the engine's, and its standard input is empty.
func TestEnvironment(t *testing.T) {
	dir := t.TempDir()
	seen := filepath.Join(dir, "seen")
	script(t, filepath.Join(dir, "engine-agent-bad"), description("bad", "1.0.0", 1), "env -0 > '"+seen+"'; cat > '"+seen+".stdin'; exit 1")
	t.Setenv("DATABASE_URL", "canary-1")
	t.Setenv("ALLOWED", "yes")
	w := newWorld(t, agents.Options{MinBackoff: time.Hour}, dir)
	spec := mock("bad", func(s *invoke.AgentSpec) { s.Plugin, s.Env = "bad", []string{"ALLOWED", "NOT_SET"} })
	if err := w.Check(t.Context(), spec); err == nil {
		t.Fatal("the agent started")
	}
	data, err := os.ReadFile(seen)
	if err != nil {
		t.Fatal(err)
	}
	for _, line := range strings.Split(strings.TrimRight(string(data), "\x00"), "\x00") {
		name, value, _ := strings.Cut(line, "=")
		switch {
		case name == "ALLOWED" && value == "yes":
		case strings.HasPrefix(name, "PLUGIN_"), strings.HasPrefix(name, "ENGINE_AGENT_"):
		case name == "PWD", name == "SHLVL", name == "_", name == "OLDPWD": // the shell's own
		default:
			t.Errorf("the process sees %s", line)
		}
	}
	if stdin, err := os.ReadFile(seen + ".stdin"); err != nil || len(stdin) > 0 {
		t.Errorf("stdin: %q %v, want nothing", stdin, err)
	}
	if !strings.Contains(string(data), "ALLOWED=yes") {
		t.Error("the process does not see what it is allowed")
	}
}

// TestSecrets: a configuration's secrets are resolved when a process starts; one
// that cannot be is the reason why calls are held; none shows in a log or in an
// error.
func TestSecrets(t *testing.T) {
	const canary = "canary-2-dont-tell"
	secret := func(field string) func(*invoke.AgentSpec) {
		return func(s *invoke.AgentSpec) {
			s.Config = dsl.NewValue([]byte(`{"`+field+`":null}`), []string{"/" + field}, []dsl.Secret{
				{Path: "/" + field, Parts: []dsl.SecretPart{{Text: t.TempDir() + "/"}, {Ref: "env:X"}}},
			})
		}
	}
	var mu sync.Mutex
	set := false
	w := newWorld(t, agents.Options{RetrySecret: 50 * time.Millisecond, Secrets: func(ref string) (string, error) {
		mu.Lock()
		defer mu.Unlock()
		if !set {
			return "", fmt.Errorf("%s is not set", ref)
		}
		return canary, nil
	}})
	spec := mock("m", secret("ledger"))
	var unset *agents.SecretError
	if err := w.Check(t.Context(), spec); !errors.As(err, &unset) || !strings.Contains(err.Error(), "env:X is not set") {
		t.Errorf("error=%v, want *SecretError", err)
	}
	_, err := w.Invoke(t.Context(), call(spec, "echo", `{}`))
	if d := mustDefer(t, err); !strings.Contains(d.Why, "env:X is not set") {
		t.Errorf("deferred: %+v", d)
	}
	mu.Lock()
	set = true
	mu.Unlock()
	w.eventually(call(spec, "echo", `{}`))
	w.mustInvoke(call(spec, "junk", `{"text":"the key is `+canary+`"}`))
	w.mustInvoke(call(spec, "echo", `{}`))
	refusing := mock("n", secret("refuse"))
	var refused *agents.ConfigError
	if err := w.Check(t.Context(), refusing); !errors.As(err, &refused) || strings.Contains(err.Error(), canary) {
		t.Errorf("error=%v, want *ConfigError without the secret", err)
	}
	w.Close()
	log := w.log.String()
	if strings.Contains(log, canary) || !strings.Contains(log, "the key is (sensitive)") {
		t.Errorf("log:\n%s", log)
	}
}
