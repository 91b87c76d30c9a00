package agents_test

import (
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/saga-engine/engine/dsl/lock"
	"github.com/saga-engine/engine/engine/agents"
	"github.com/saga-engine/engine/sdk/plugin"
)

// description is what a made-up agent prints.
func description(name, version string, protocol int) string {
	return fmt.Sprintf(`{"name":%q,"version":%q,"protocol_versions":[%d],"actions":{"go":{}}}`, name, version, protocol)
}

// script installs an agent that is a shell script: it describes itself, counts
// how often in path.calls, and does body otherwise.
func script(t *testing.T, path, describe, body string) string {
	t.Helper()
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		t.Fatal(err)
	}
	text := "#!/bin/sh\nif [ \"$1\" = describe ]; then\n  echo x >> '" + path + ".calls'\n  cat <<'EOF'\n" + describe + "\nEOF\n  exit 0\nfi\n" + body + "\n"
	if err := os.WriteFile(path, []byte(text), 0o755); err != nil {
		t.Fatal(err)
	}
	return path
}

// flat installs DIR/engine-agent-NAME.
func flat(t *testing.T, dir, name, version string) string {
	t.Helper()
	return script(t, filepath.Join(dir, "engine-agent-"+name), description(name, version, 1), "exit 9")
}

// versioned installs DIR/NAME/VERSION/OS_ARCH/engine-agent-NAME.
func versioned(t *testing.T, dir, name, version string) string {
	t.Helper()
	path := filepath.Join(dir, name, version, agents.Platform(), "engine-agent-"+name)
	return script(t, path, description(name, version, 1), "exit 9")
}

func TestDiscover(t *testing.T) {
	root := t.TempDir()
	dir := func(name string) string { return filepath.Join(root, name) }
	flagFlat := flat(t, dir("flag"), "a", "1.0.0")
	flag2 := versioned(t, dir("flag"), "a", "2.0.0")
	flag10 := versioned(t, dir("flag"), "a", "10.0.0")
	dev := flat(t, dir("dev"), "a", "0.0.1")
	project := versioned(t, dir("module/.engine/agents"), "a", "3.0.0")
	env := flat(t, dir("env"), "b", "1.0.0")
	user := versioned(t, dir("user"), "a", "4.0.0")
	engine := flat(t, dir("bin"), "a", "5.0.0")
	// What is no agent, or is not looked at.
	flat(t, dir("module"), "stray", "1.0.0")
	flat(t, dir("module/.engine/agents"), "stray", "1.0.0")
	flat(t, dir("user"), "stray", "1.0.0")
	script(t, dir("user/a/4.1.0/plan9_mips/engine-agent-a"), "", "")
	script(t, dir("user/a/latest/"+agents.Platform()+"/engine-agent-a"), "", "")
	script(t, dir("bin/engine-agent-"), "", "")
	script(t, dir("bin/engine-agent-Bad.Name"), "", "")

	found, err := agents.Discover(agents.SearchOptions{
		PluginDirs: []string{dir("flag"), dir("flag")}, DevOverrides: map[string]string{"a": dir("dev")},
		Modules: []string{dir("module")}, EnvDirs: []string{dir("env")}, UserDir: dir("user"), EngineDir: dir("bin"),
	})
	if err != nil {
		t.Fatal(err)
	}
	want := []agents.Found{
		{Name: "a", Path: flagFlat, Source: agents.SourceFlag, Dir: dir("flag")},
		{Name: "a", Version: "10.0.0", Path: flag10, Source: agents.SourceFlag, Dir: dir("flag")},
		{Name: "a", Version: "2.0.0", Path: flag2, Source: agents.SourceFlag, Dir: dir("flag")},
		{Name: "a", Path: dev, Source: agents.SourceDev},
		{Name: "a", Version: "3.0.0", Path: project, Source: agents.SourceProject, Dir: dir("module/.engine/agents")},
		{Name: "b", Path: env, Source: agents.SourceEnv, Dir: dir("env")},
		{Name: "a", Version: "4.0.0", Path: user, Source: agents.SourceUser, Dir: dir("user")},
		{Name: "a", Path: engine, Source: agents.SourceEngine, Dir: dir("bin")},
	}
	if len(found) != len(want) {
		t.Fatalf("found %d:\n%+v\nwant %d", len(found), found, len(want))
	}
	for i := range want {
		if found[i] != want[i] {
			t.Errorf("[%d]\n got %+v\nwant %+v", i, found[i], want[i])
		}
	}
}

// TestDiscoverNever: neither the working directory nor PATH is searched.
func TestDiscoverNever(t *testing.T) {
	dir := t.TempDir()
	flat(t, dir, "a", "1.0.0")
	t.Chdir(dir)
	t.Setenv("PATH", dir)
	c := agents.NewCatalog(agents.CatalogOptions{Search: agents.SearchOptions{Modules: []string{dir}}})
	var missing *agents.NotFoundError
	if _, err := c.Find(t.Context(), "a", ""); !errors.As(err, &missing) {
		t.Errorf("error=%v, want *NotFoundError", err)
	}
}

// TestNotFoundHints: a binary that lies beside its place is named with that
// place, an installed agent whose name is close is suggested.
func TestNotFoundHints(t *testing.T) {
	project := t.TempDir()
	place := filepath.Join(project, ".engine", "agents")
	bare := flat(t, place, "crane", "1.0.0")
	high := flat(t, filepath.Join(place, "lift", "2.0.0"), "lift", "2.0.0")
	versioned(t, place, "http", "1.0.0")
	c := agents.NewCatalog(agents.CatalogOptions{Search: agents.SearchOptions{Modules: []string{project}}})
	at := func(name, ver string) string {
		return filepath.Join(place, name, ver, agents.Platform(), "engine-agent-"+name)
	}
	for name, tc := range map[string]struct{ text, hint string }{
		"crane": {bare + " is not where it is looked for, NAME/VERSION/OS_ARCH/engine-agent-NAME", "move the file to " + at("crane", "VERSION")},
		"lift":  {high + " is not where it is looked for", "move the file to " + at("lift", "2.0.0")},
		"htp":   {"no engine-agent-htp in " + place, `did you mean "http"?`},
		"htttp": {"no engine-agent-htttp in " + place, `did you mean "http"?`},
		"zebra": {"no engine-agent-zebra in " + place, "install the agent, or say where it is with --plugin-dir"},
	} {
		var missing *agents.NotFoundError
		_, err := c.Find(t.Context(), name, "")
		if !errors.As(err, &missing) || !strings.Contains(err.Error(), tc.text) || missing.Hint() != tc.hint {
			t.Errorf("%s: error=%v, want %q with hint %q", name, err, tc.text, tc.hint)
		}
	}
}

func TestDiscoverMissingPlaces(t *testing.T) {
	gone := filepath.Join(t.TempDir(), "gone")
	if found, err := agents.Discover(agents.SearchOptions{Modules: []string{gone}, UserDir: gone, EngineDir: gone}); err != nil || len(found) > 0 {
		t.Errorf("found=%v err=%v, want nothing: these places need not exist", found, err)
	}
	for name, o := range map[string]agents.SearchOptions{
		"flag": {PluginDirs: []string{gone}}, "environment": {EnvDirs: []string{gone}},
	} {
		if _, err := agents.Discover(o); err == nil || !strings.Contains(err.Error(), gone) {
			t.Errorf("%s: error=%v, want one that names %s", name, err, gone)
		}
	}
}

func TestDefaultSearch(t *testing.T) {
	home := t.TempDir()
	conf := filepath.Join(home, ".config", "engine", "config.hcl")
	if err := os.MkdirAll(filepath.Dir(conf), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(conf, []byte("dev_overrides {\n  a = \"bin\"\n  b = \"/abs\"\n}\n"), 0o644); err != nil {
		t.Fatal(err)
	}
	env := map[string]string{"HOME": home, "ENGINE_PLUGIN_DIR": "/x" + string(os.PathListSeparator) + "/y"}
	o, diags := agents.DefaultSearch(func(k string) string { return env[k] })
	if diags.HasErrors() {
		t.Fatal(diags.Err())
	}
	if got, want := o.DevOverrides["a"], filepath.Join(filepath.Dir(conf), "bin"); got != want || o.DevOverrides["b"] != "/abs" {
		t.Errorf("overrides=%v, want a=%s", o.DevOverrides, want)
	}
	if len(o.EnvDirs) != 2 || o.EnvDirs[1] != "/y" || o.UserDir != filepath.Join(home, ".local", "share", "engine", "agents") || o.EngineDir == "" {
		t.Errorf("search=%+v", o)
	}
	env["ENGINE_CONFIG"] = filepath.Join(home, "bad.hcl")
	if err := os.WriteFile(env["ENGINE_CONFIG"], []byte("dev_overides {}"), 0o644); err != nil {
		t.Fatal(err)
	}
	if _, diags := agents.DefaultSearch(func(k string) string { return env[k] }); !diags.HasErrors() {
		t.Error("a configuration file with a mistake is accepted")
	}
	if o, diags := agents.DefaultSearch(func(string) string { return "" }); diags.HasErrors() || o.UserDir != "" {
		t.Errorf("without a home: %+v %v", o, diags)
	}
}

func TestFind(t *testing.T) {
	root := t.TempDir()
	dir := func(name string) string { return filepath.Join(root, name) }
	flat(t, dir("flag"), "a", "1.5.0")
	versioned(t, dir("flag"), "a", "1.4.0")
	versioned(t, dir("user"), "a", "1.9.0")
	versioned(t, dir("user"), "a", "1.10.0")
	versioned(t, dir("user"), "a", "2.0.0-beta.1")
	versioned(t, dir("user"), "a", "2.0.0")
	c := agents.NewCatalog(agents.CatalogOptions{Search: agents.SearchOptions{PluginDirs: []string{dir("flag")}, UserDir: dir("user")}})
	for name, tc := range map[string]struct {
		constraint, want string
		source           agents.Source
	}{
		"first place wins":      {"", "1.5.0", agents.SourceFlag},
		"newest of the place":   {"~> 1.4", "1.5.0", agents.SourceFlag},
		"exact in first place":  {"1.4.0", "1.4.0", agents.SourceFlag},
		"only in a later place": {">= 1.6, < 2.0.0", "1.10.0", agents.SourceUser},
		"pre-release by name":   {"2.0.0-beta.1", "2.0.0-beta.1", agents.SourceUser},
		"no pre-release":        {"> 1.10.0", "2.0.0", agents.SourceUser},
	} {
		t.Run(name, func(t *testing.T) {
			b, err := c.Find(t.Context(), "a", tc.constraint)
			if err != nil {
				t.Fatal(err)
			}
			if b.Version != tc.want || b.Source != tc.source || b.Schema.Name != "a" || len(b.Checksum) != 64 {
				t.Errorf("got %s from %s, want %s from %s", b.Version, b.Source, tc.want, tc.source)
			}
		})
	}
	var unmet *agents.VersionError
	_, err := c.Find(t.Context(), "a", ">= 3")
	if !errors.As(err, &unmet) || !strings.Contains(err.Error(), ">= 3") || !strings.Contains(err.Error(), "1.10.0") {
		t.Errorf("error=%v, want *VersionError that names the constraint and what there is", err)
	}
	var missing *agents.NotFoundError
	if _, err = c.Find(t.Context(), "zzz", ""); !errors.As(err, &missing) || !strings.Contains(err.Error(), dir("user")) || missing.Hint() == "" {
		t.Errorf("error=%v, want *NotFoundError that names the places", err)
	}
	if _, err = c.Find(t.Context(), "a", "about 3"); err == nil {
		t.Error("a constraint that is none is accepted")
	}
	list, err := c.List(t.Context())
	if err != nil || len(list) != 1 || list[0].Version != "1.5.0" || len(list[0].Shadows) != 5 || list[0].Err != nil {
		t.Errorf("list=%+v err=%v, want a 1.5.0 that shadows 5", list, err)
	}
}

// TestPresent: a file of a module that no lock file names is compared, not run.
func TestPresent(t *testing.T) {
	module := t.TempDir()
	path := versioned(t, filepath.Join(module, ".engine", "agents"), "a", "1.0.0")
	text, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	sum := fmt.Sprintf("%x", sha256.Sum256(text))
	c := agents.NewCatalog(agents.CatalogOptions{Search: agents.SearchOptions{Modules: []string{module}}})
	if err := c.Present(t.Context(), "a", "1.0.0", sum); err != nil {
		t.Errorf("error=%v, want none: the file is there", err)
	}
	var changed *agents.ChecksumError
	if err := c.Present(t.Context(), "a", "1.0.0", strings.Repeat("ab", 32)); !errors.As(err, &changed) {
		t.Errorf("error=%v, want *ChecksumError", err)
	}
	var unlocked *agents.UnlockedError
	if err := c.Present(t.Context(), "a", "1.0.0", ""); !errors.As(err, &unlocked) || unlocked.Path != path || unlocked.Hint() == "" {
		t.Errorf("error=%v, want *UnlockedError that names the file", err)
	}
	if _, err := os.Stat(path + ".calls"); err == nil {
		t.Error("the file was run")
	}
	if b, err := c.Exact(t.Context(), "a", "1.0.0", sum); err != nil || b.Schema.Name != "a" {
		t.Errorf("exact = %+v, error=%v, want the file that the checksum names", b, err)
	}
}

func TestExact(t *testing.T) {
	root := t.TempDir()
	first := versioned(t, filepath.Join(root, "x"), "a", "1.0.0")
	second := flat(t, filepath.Join(root, "y"), "a", "1.0.0")
	c := agents.NewCatalog(agents.CatalogOptions{Search: agents.SearchOptions{PluginDirs: []string{filepath.Join(root, "x"), filepath.Join(root, "y")}}})
	byPath := map[string]agents.Binary{}
	for _, path := range []string{first, second} {
		b, err := c.Describe(t.Context(), agents.Found{Name: "a", Path: path})
		if err != nil {
			t.Fatal(err)
		}
		byPath[path] = b
	}
	for _, path := range []string{first, second} {
		b, err := c.Exact(t.Context(), "a", "1.0.0", byPath[path].Checksum)
		if err != nil || b.Path != path {
			t.Errorf("got %s, %v, want the one with the checksum, %s", b.Path, err, path)
		}
	}
	var changed *agents.ChecksumError
	if _, err := c.Exact(t.Context(), "a", "1.0.0", strings.Repeat("0", 64)); !errors.As(err, &changed) || changed.Path != first || changed.Hint() == "" {
		t.Errorf("error=%v, want *ChecksumError", err)
	}
	var unmet *agents.VersionError
	if _, err := c.Exact(t.Context(), "a", "1.0.1", ""); !errors.As(err, &unmet) {
		t.Errorf("error=%v, want *VersionError", err)
	}
}

// TestOtherBinaryIsNotRun: what is not the recorded binary is told by its
// checksum alone, whatever it would do or print.
func TestOtherBinaryIsNotRun(t *testing.T) {
	for name, install := range map[string]func(*testing.T, string, string, string) string{
		"by version": func(t *testing.T, dir, describe, body string) string {
			return script(t, filepath.Join(dir, "a", "1.0.0", agents.Platform(), "engine-agent-a"), describe, body)
		},
		"bare file": func(t *testing.T, dir, describe, body string) string {
			return script(t, filepath.Join(dir, "engine-agent-a"), describe, body)
		},
	} {
		for what, describe := range map[string]string{"wrapper": description("a", "1.0.0", 1), "junk": "hello"} {
			t.Run(name+", "+what, func(t *testing.T) {
				dir, cache := t.TempDir(), filepath.Join(t.TempDir(), "cache")
				catalog := func() *agents.Catalog {
					return agents.NewCatalog(agents.CatalogOptions{Search: agents.SearchOptions{PluginDirs: []string{dir}}, CacheDir: cache})
				}
				install(t, dir, description("a", "1.0.0", 1), "exit 9")
				lock, err := catalog().Lock(t.Context(), []agents.Use{{Name: "a"}}, lock.Lock{}, false)
				if err != nil {
					t.Fatal(err)
				}
				path := install(t, dir, describe, "echo x >> \"$0.calls\"")
				if err := os.Remove(path + ".calls"); err != nil {
					t.Fatal(err)
				}
				var changed *agents.ChecksumError
				if _, err := catalog().Resolve(t.Context(), agents.Use{Name: "a"}, &lock); !errors.As(err, &changed) || changed.Path != path || changed.Version != "1.0.0" {
					t.Errorf("resolve: error=%v, want *ChecksumError about %s", err, path)
				}
				if _, err := catalog().Lock(t.Context(), []agents.Use{{Name: "a"}}, lock, false); !errors.As(err, &changed) {
					t.Errorf("lock: error=%v, want *ChecksumError", err)
				}
				if _, err := os.Stat(path + ".calls"); !errors.Is(err, os.ErrNotExist) {
					t.Errorf("the binary was run (stat: %v)", err)
				}
			})
		}
	}
}

// TestExactBareFiles: a bare file with another checksum does not stand in the
// way of the right one, and another version is called that where it is known.
func TestExactBareFiles(t *testing.T) {
	root := t.TempDir()
	other := flat(t, filepath.Join(root, "x"), "a", "2.0.0")
	right := flat(t, filepath.Join(root, "y"), "a", "1.0.0")
	cache := filepath.Join(root, "cache")
	catalog := func(dirs ...string) *agents.Catalog {
		return agents.NewCatalog(agents.CatalogOptions{Search: agents.SearchOptions{PluginDirs: dirs}, CacheDir: cache})
	}
	want, err := catalog().Describe(t.Context(), agents.Found{Name: "a", Path: right})
	if err != nil {
		t.Fatal(err)
	}
	b, err := catalog(filepath.Dir(other), filepath.Dir(right)).Exact(t.Context(), "a", "1.0.0", want.Checksum)
	if err != nil || b.Path != right {
		t.Errorf("got %s, %v, want %s", b.Path, err, right)
	}
	var changed *agents.ChecksumError
	if _, err := catalog(filepath.Dir(other)).Exact(t.Context(), "a", "1.0.0", want.Checksum); !errors.As(err, &changed) {
		t.Errorf("error=%v, want *ChecksumError: nothing else is known of the file", err)
	}
	if _, err := catalog().Describe(t.Context(), agents.Found{Name: "a", Path: other}); err != nil {
		t.Fatal(err)
	}
	var unmet *agents.VersionError
	if _, err := catalog(filepath.Dir(other)).Exact(t.Context(), "a", "1.0.0", want.Checksum); !errors.As(err, &unmet) || !strings.Contains(err.Error(), "2.0.0") {
		t.Errorf("error=%v, want *VersionError that names 2.0.0", err)
	}
}

// TestDevOverrides: an override fits every version and checksum, and is warned
// about once.
func TestDevOverrides(t *testing.T) {
	root := t.TempDir()
	flat(t, filepath.Join(root, "dev"), "a", "0.0.1")
	versioned(t, filepath.Join(root, "user"), "a", "1.0.0")
	var log strings.Builder
	c := agents.NewCatalog(agents.CatalogOptions{
		Search: agents.SearchOptions{DevOverrides: map[string]string{"a": filepath.Join(root, "dev")}, UserDir: filepath.Join(root, "user")},
		Logger: slog.New(slog.NewTextHandler(&log, nil)),
	})
	b, err := c.Find(t.Context(), "a", ">= 1.0.0")
	if err != nil || b.Version != "0.0.1" || b.Pin().Checksum != "" {
		t.Errorf("find: %+v %v, want the override, without a checksum", b, err)
	}
	if b, err = c.Exact(t.Context(), "a", "1.0.0", strings.Repeat("0", 64)); err != nil || b.Version != "0.0.1" {
		t.Errorf("exact: %+v %v, want the override", b, err)
	}
	if n := strings.Count(log.String(), "level=WARN"); n != 1 {
		t.Errorf("%d warnings, want 1:\n%s", n, log.String())
	}
	gone := agents.NewCatalog(agents.CatalogOptions{Search: agents.SearchOptions{
		DevOverrides: map[string]string{"a": filepath.Join(root, "gone")}, UserDir: filepath.Join(root, "user"),
	}})
	var start *plugin.StartError
	if _, err := gone.Find(t.Context(), "a", ""); !errors.As(err, &start) || start.Reason != plugin.ReasonMissing {
		t.Errorf("error=%v, want that the override is missing", err)
	}
}

// TestDescribeMistakes: what is in the wrong place, speaks another protocol or
// is no agent at all is not used, and nothing else silently instead.
func TestDescribeMistakes(t *testing.T) {
	for name, tc := range map[string]struct {
		install func(t *testing.T, dir string)
		want    string
		reason  plugin.Reason
	}{
		"other agent": {func(t *testing.T, dir string) {
			script(t, filepath.Join(dir, "engine-agent-a"), description("b", "1.0.0", 1), "")
		}, `holds agent "b"`, plugin.ReasonDescription},
		"other version": {func(t *testing.T, dir string) {
			script(t, filepath.Join(dir, "a", "2.0.0", agents.Platform(), "engine-agent-a"), description("a", "1.0.0", 1), "")
		}, "but the binary is version 1.0.0", plugin.ReasonDescription},
		"newer protocol": {func(t *testing.T, dir string) {
			script(t, filepath.Join(dir, "engine-agent-a"), description("a", "1.0.0", 99), "")
		}, "speaks protocol 99", plugin.ReasonProtocol},
		"junk": {func(t *testing.T, dir string) {
			script(t, filepath.Join(dir, "engine-agent-a"), "hello", "")
		}, "no description", plugin.ReasonDescription},
		"not executable": {func(t *testing.T, dir string) {
			if err := os.Chmod(flat(t, dir, "a", "1.0.0"), 0o644); err != nil {
				t.Fatal(err)
			}
		}, "not executable", plugin.ReasonNotExecutable},
	} {
		t.Run(name, func(t *testing.T) {
			dir, other := t.TempDir(), t.TempDir()
			tc.install(t, dir)
			flat(t, other, "a", "1.0.0")
			c := agents.NewCatalog(agents.CatalogOptions{Search: agents.SearchOptions{PluginDirs: []string{dir, other}}})
			_, err := c.Find(t.Context(), "a", "")
			var start *plugin.StartError
			if !errors.As(err, &start) || start.Reason != tc.reason || !strings.Contains(err.Error(), tc.want) {
				t.Errorf("error=%v, want %s: %q", err, tc.reason, tc.want)
			}
			list, err := c.List(t.Context())
			if err != nil || len(list) != 1 || list[0].Err == nil {
				t.Errorf("list=%+v %v, want the mistake", list, err)
			}
		})
	}
}

// TestDescribeCache: a binary is asked once, until it changes; a cache that
// cannot be trusted or read is no error.
func TestDescribeCache(t *testing.T) {
	dir, cache := t.TempDir(), filepath.Join(t.TempDir(), "cache")
	path := flat(t, dir, "a", "1.0.0")
	find := func() agents.Binary {
		t.Helper()
		c := agents.NewCatalog(agents.CatalogOptions{Search: agents.SearchOptions{PluginDirs: []string{dir}}, CacheDir: cache})
		b, err := c.Find(context.Background(), "a", "")
		if err != nil {
			t.Fatal(err)
		}
		return b
	}
	asked := func() int {
		data, err := os.ReadFile(path + ".calls")
		if err != nil {
			t.Fatal(err)
		}
		return strings.Count(string(data), "x")
	}
	first := find()
	if again := find(); asked() != 1 || again.Checksum != first.Checksum || again.Schema.Name != "a" {
		t.Errorf("asked %d times, want once", asked())
	}
	if info, err := os.Stat(cache); err != nil || info.Mode().Perm() != 0o700 {
		t.Errorf("cache: %v %v, want mode 0700", info.Mode(), err)
	}
	file := filepath.Join(cache, first.Checksum+".json")
	for n, text := range []string{"", "{", `{"version":1,"checksum":"` + first.Checksum + `"}`, `[]`} {
		if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		if find(); asked() != n+2 {
			t.Errorf("asked %d times after corruption %q, want %d", asked(), text, n+2)
		}
	}
	before := asked()
	if err := os.Chmod(cache, 0o777); err != nil {
		t.Fatal(err)
	}
	if find(); asked() != before+1 {
		t.Error("a cache that everybody can write to was believed")
	}
	if err := os.Chmod(cache, 0o700); err != nil {
		t.Fatal(err)
	}
	flat(t, dir, "a", "1.0.1")
	if b := find(); b.Version != "1.0.1" || b.Checksum == first.Checksum {
		t.Errorf("version=%s, want the changed binary's", b.Version)
	}
}

func TestLockAndResolve(t *testing.T) {
	user := t.TempDir()
	versioned(t, user, "a", "1.0.0")
	path := versioned(t, user, "a", "1.1.0")
	versioned(t, user, "b", "0.1.0")
	search := agents.SearchOptions{UserDir: user}
	catalog := func() *agents.Catalog { return agents.NewCatalog(agents.CatalogOptions{Search: search}) }
	ctx := t.Context()

	uses := []agents.Use{{Name: "b"}, {Name: "a", Constraint: "~> 1.0"}, {Name: "a", Constraint: "< 1.1"}, {Name: "a", Constraint: "~> 1.0"}}
	locked, err := catalog().Lock(ctx, uses, lock.Lock{}, false)
	if err != nil {
		t.Fatal(err)
	}
	a, _ := locked.Agent("a")
	if len(locked.Agents) != 2 || a.Version != "1.0.0" || a.Constraint != "< 1.1, ~> 1.0" || len(a.Hashes) != 1 {
		t.Fatalf("lock=%+v", locked)
	}
	locked.Agents[0].Hashes["plan9_mips"] = strings.Repeat("1", 64)

	t.Run("what is locked stays", func(t *testing.T) {
		next, err := catalog().Lock(ctx, []agents.Use{{Name: "a"}}, locked, false)
		if err != nil {
			t.Fatal(err)
		}
		if a, _ := next.Agent("a"); len(next.Agents) != 1 || a.Version != "1.0.0" || len(a.Hashes) != 2 {
			t.Errorf("lock=%+v, want a 1.0.0 with both hashes and nothing else", next)
		}
		b, err := catalog().Resolve(ctx, agents.Use{Name: "a"}, &locked)
		if err != nil || b.Version != "1.0.0" {
			t.Errorf("resolve: %s %v, want the locked version", b.Version, err)
		}
		if b, err = catalog().Resolve(ctx, agents.Use{Name: "a"}, nil); err != nil || b.Version != "1.1.0" {
			t.Errorf("without a lock: %s %v, want the newest", b.Version, err)
		}
	})
	t.Run("upgrade", func(t *testing.T) {
		next, err := catalog().Lock(ctx, []agents.Use{{Name: "a"}}, locked, true)
		if err != nil {
			t.Fatal(err)
		}
		if a, _ := next.Agent("a"); a.Version != "1.1.0" || len(a.Hashes) != 1 {
			t.Errorf("lock=%+v, want a 1.1.0 with its own hash only", next)
		}
	})
	t.Run("does not fit", func(t *testing.T) {
		var lockErr *agents.LockError
		for name, tc := range map[string]struct {
			use  agents.Use
			lock lock.Lock
			want string
		}{
			"not locked":   {agents.Use{Name: "c"}, locked, "is not in"},
			"constraint":   {agents.Use{Name: "a", Constraint: ">= 1.1"}, locked, "does not allow"},
			"nonsense":     {agents.Use{Name: "a", Constraint: "new"}, locked, "constraint"},
			"other system": {agents.Use{Name: "a"}, lock.Lock{Agents: []lock.Agent{{Name: "a", Version: "1.0.0"}}}, "no hash for"},
		} {
			if _, err := catalog().Resolve(ctx, tc.use, &tc.lock); !errors.As(err, &lockErr) || !strings.Contains(err.Error(), tc.want) || lockErr.Hint() == "" {
				t.Errorf("%s: error=%v, want %q", name, err, tc.want)
			}
		}
		if next, err := catalog().Lock(ctx, []agents.Use{{Name: "a", Constraint: ">= 1.1"}}, locked, false); err != nil || next.Agents[0].Version != "1.1.0" {
			t.Errorf("lock=%+v %v: a constraint that the lock does not meet chooses anew", next, err)
		}
	})
	t.Run("changed since", func(t *testing.T) {
		upgraded, err := catalog().Lock(ctx, []agents.Use{{Name: "a"}}, lock.Lock{}, false)
		if err != nil {
			t.Fatal(err)
		}
		upgraded.Agents[0].Hashes["plan9_mips"] = strings.Repeat("1", 64)
		script(t, path, description("a", "1.1.0", 1), "exit 10")
		var changed *agents.ChecksumError
		if _, err := catalog().Resolve(ctx, agents.Use{Name: "a"}, &upgraded); !errors.As(err, &changed) {
			t.Errorf("resolve: error=%v, want *ChecksumError", err)
		}
		if _, err := catalog().Lock(ctx, []agents.Use{{Name: "a"}}, upgraded, false); !errors.As(err, &changed) {
			t.Errorf("lock: error=%v, want *ChecksumError", err)
		}
		next, err := catalog().Lock(ctx, []agents.Use{{Name: "a"}}, upgraded, true)
		if err != nil || len(next.Agents[0].Hashes) != 1 || next.Agents[0].Hashes[agents.Platform()] == upgraded.Agents[0].Hashes[agents.Platform()] {
			t.Errorf("upgrade: %+v %v, want the new hash, and none of another build's", next, err)
		}
	})
	t.Run("override", func(t *testing.T) {
		dev := t.TempDir()
		flat(t, dev, "a", "0.0.1")
		search := search
		search.DevOverrides = map[string]string{"a": dev}
		c := agents.NewCatalog(agents.CatalogOptions{Search: search})
		if b, err := c.Resolve(ctx, agents.Use{Name: "a", Constraint: "~> 1.0"}, &locked); err != nil || b.Version != "0.0.1" {
			t.Errorf("resolve: %s %v, want the override", b.Version, err)
		}
		if next, err := c.Lock(ctx, uses, locked, true); err != nil || next.Agents[0].Version != "1.0.0" {
			t.Errorf("lock=%+v %v, want the old entry kept", next, err)
		}
	})
}

// A reentrant log handler asks the catalogue while it is called: it can
// only return if no lock is held meanwhile.
type reentrant struct {
	slog.Handler
	ask func()
}

func (h reentrant) Enabled(context.Context, slog.Level) bool { return true }
func (h reentrant) Handle(context.Context, slog.Record) error {
	h.ask()
	return nil
}

func TestCatalogLogsWithoutItsLock(t *testing.T) {
	dir := t.TempDir()
	path := flat(t, dir, "a", "1.0.0")
	var c *agents.Catalog
	told := make(chan error, 1)
	c = agents.NewCatalog(agents.CatalogOptions{
		Search: agents.SearchOptions{DevOverrides: map[string]string{"a": path}},
		Logger: slog.New(reentrant{slog.DiscardHandler, func() { c.Refresh() }}),
	})
	go func() { _, err := c.Find(t.Context(), "a", ""); told <- err }()
	select {
	case err := <-told:
		if err != nil {
			t.Error(err)
		}
	case <-time.After(patience):
		t.Fatal("the logger waits for the catalogue's lock")
	}
}
