package lock

import (
	"fmt"
	"strings"
	"testing"
)

// TestLockComputesNothing: a lock file holds plain values; what computes is
// refused before it is evaluated.
func TestLockComputesNothing(t *testing.T) {
	loops := strings.Repeat("[for a in [1, 2, 3, 4, 5, 6, 7, 8, 9] : ", 40) + "a" + strings.Repeat("]", 40)
	for _, version := range []string{loops, `"${1e900000000}"`, `"a${1e900000000}"`, "true ? \"1\" : \"2\"", `"%{ for x in [1] }x%{ endfor }"`} {
		_, diags := Read([]byte("agent \"a\" {\n  version = "+version+"\n  hashes = []\n}\n"), "engine.lock.hcl")
		if !strings.Contains(fmt.Sprint(diags.Err()), "Not a literal value") {
			t.Errorf("%.60s: %v", version, diags.Err())
		}
	}
}

var someHash = strings.Repeat("0123456789abcdef", 4)

func TestLockRoundTrip(t *testing.T) {
	l := Lock{Agents: []Agent{
		{Name: "stripe", Version: "1.2.3", Constraint: `~> 1.2, != 1.2.1`, Hashes: map[string]string{"linux_amd64": someHash, "darwin_arm64": strings.Repeat("ab", 32)}},
		{Name: "http", Version: "0.1.0", Source: "./bin", Hashes: map[string]string{"linux_amd64": someHash}},
	}}
	text := Format(l)
	want := lockHeader + `
agent "http" {
  version = "0.1.0"
  source  = "./bin"
  hashes = [
    "linux_amd64:sha256:` + someHash + `",
  ]
}

agent "stripe" {
  version    = "1.2.3"
  constraint = "~> 1.2, != 1.2.1"
  hashes = [
    "darwin_arm64:sha256:` + strings.Repeat("ab", 32) + `",
    "linux_amd64:sha256:` + someHash + `",
  ]
}
`
	if got := string(text); got != want {
		t.Errorf("got:\n%s\nwant:\n%s", got, want)
	}
	back, diags := Read(text, File)
	if diags.HasErrors() {
		t.Fatal(diags.Err())
	}
	if again := string(Format(back)); again != want {
		t.Errorf("read back:\n%s\nwant:\n%s", again, want)
	}
	if a, ok := back.Agent("stripe"); !ok || a.Version != "1.2.3" || a.Hashes["linux_amd64"] != someHash {
		t.Errorf("stripe=%+v %v", a, ok)
	}
	if a, _ := back.Agent("http"); a.Source != "./bin" {
		t.Errorf("http=%+v, want its source", a)
	}
	if a, ok := back.Agent("other"); ok {
		t.Errorf("other=%+v, want none", a)
	}
}

func TestReadLockErrors(t *testing.T) {
	hash := `"linux_amd64:sha256:` + someHash + `"`
	for name, tc := range map[string]struct{ src, want string }{
		"syntax":        {`agent "a" {`, "Unclosed configuration block"},
		"unknown block": {`agnt "a" {}`, "Unsupported block type"},
		"unknown argument": {`agent "a" {
  version = "1.0.0"
  hashes  = []
  size    = 3
}`, "Unsupported argument"},
		"no version": {`agent "a" {
  hashes = [` + hash + `]
}`, "Missing required argument"},
		"empty version": {`agent "a" {
  version = ""
  hashes  = [` + hash + `]
}`, "locked to no version"},
		"twice": {`agent "a" {
  version = "1.0.0"
  hashes  = []
}
agent "a" {
  version = "1.0.0"
  hashes  = []
}`, "locked twice"},
		"bad name": {`agent "../a" {
  version = "1.0.0"
  hashes  = []
}`, "cannot be the name"},
		"short hash": {`agent "a" {
  version = "1.0.0"
  hashes  = ["linux_amd64:sha256:00"]
}`, "is not a hash"},
		"other algorithm": {`agent "a" {
  version = "1.0.0"
  hashes  = ["linux_amd64:md5:` + someHash + `"]
}`, "is not a hash"},
		"two for a platform": {`agent "a" {
  version = "1.0.0"
  hashes  = [` + hash + `, ` + hash + `]
}`, "two hashes for linux_amd64"},
		"an expression": {`agent "a" {
  version = env("X")
  hashes  = []
}`, "Function calls not allowed"},
		"too deep":  {"a = " + strings.Repeat("[", 100_000), "Nesting too deep"},
		"too large": {"# " + strings.Repeat("x", 2<<20), "File too large"},
	} {
		t.Run(name, func(t *testing.T) {
			l, diags := Read([]byte(tc.src), File)
			err := diags.Err()
			if err == nil || !strings.Contains(err.Error(), tc.want) {
				t.Fatalf("error=%v, want %q", err, tc.want)
			}
			if len(l.Agents) != 0 {
				t.Errorf("agents=%v, want none of a lock with errors", l.Agents)
			}
			if !strings.HasPrefix(err.Error(), File+":") {
				t.Errorf("error=%v, want the place first", err)
			}
		})
	}
}

func TestReadUserConfig(t *testing.T) {
	conf, diags := ReadUserConfig([]byte(`
dev_overrides {
  http = "/src/bin"
  my-agent = "bin/engine-agent-my-agent"
}
`), "config.hcl")
	if diags.HasErrors() {
		t.Fatal(diags.Err())
	}
	if len(conf.DevOverrides) != 2 || conf.DevOverrides["http"] != "/src/bin" || conf.DevOverrides["my-agent"] != "bin/engine-agent-my-agent" {
		t.Errorf("overrides=%v", conf.DevOverrides)
	}
	for name, tc := range map[string]struct{ src, want string }{
		"unknown block":    {`plugins {}`, "Unsupported block type"},
		"unknown argument": {`colour = true`, "Unsupported argument"},
		"not a path":       {`dev_overrides { http = 3 }`, "must be the path"},
		"empty path":       {`dev_overrides { http = "" }`, "must be the path"},
		"a reference":      {`dev_overrides { http = x }`, "Variables not allowed"},
		"not a name":       {`dev_overrides { Http = "x" }`, "cannot be the name"},
	} {
		t.Run(name, func(t *testing.T) {
			_, diags := ReadUserConfig([]byte(tc.src), "config.hcl")
			if err := diags.Err(); err == nil || !strings.Contains(err.Error(), tc.want) {
				t.Errorf("error=%v, want %q", err, tc.want)
			}
		})
	}
}

// A hash in capital letters is the same hash.
func TestReadLockHashLetters(t *testing.T) {
	l, diags := Read([]byte("agent \"a\" {\n  version = \"1.0.0\"\n  hashes  = [\"linux_amd64:sha256:"+strings.ToUpper(someHash)+"\"]\n}\n"), File)
	if diags.HasErrors() {
		t.Fatal(diags.Err())
	}
	if a, _ := l.Agent("a"); a.Hashes["linux_amd64"] != someHash {
		t.Errorf("hashes %v, want %s", a.Hashes, someHash)
	}
}

func FuzzReadLock(f *testing.F) {
	f.Add([]byte(Format(Lock{Agents: []Agent{{Name: "a", Version: "1.0.0", Hashes: map[string]string{"linux_amd64": someHash}}}})))
	f.Add([]byte(`agent "a" {`))
	f.Fuzz(func(t *testing.T, src []byte) {
		l, diags := Read(src, File)
		if diags.HasErrors() {
			return
		}
		text := Format(l)
		back, diags := Read(text, File)
		if diags.HasErrors() {
			t.Fatalf("what was read cannot be read back: %v\n%s", diags.Err(), text)
		}
		if string(Format(back)) != string(text) {
			t.Fatalf("not stable:\n%s", text)
		}
	})
}
