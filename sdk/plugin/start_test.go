package plugin

import (
	"bytes"
	"context"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/saga-engine/engine/sdk"
)

func wantStartError(t *testing.T, err error, reason Reason, text, hint string) {
	t.Helper()
	var start *StartError
	if !errors.As(err, &start) {
		t.Fatalf("error = %v, want a *StartError", err)
	}
	if start.Reason != reason || !strings.Contains(start.Error(), text) || !strings.Contains(start.Hint, hint) {
		t.Errorf("error = %v (reason %q, hint %q)\nwant reason %q, text with %q, hint with %q", start, start.Reason, start.Hint, reason, text, hint)
	}
}

func TestOpenBadBinary(t *testing.T) {
	dir := t.TempDir()
	plain := filepath.Join(dir, "plain")
	if err := os.WriteFile(plain, []byte("text"), 0o644); err != nil {
		t.Fatal(err)
	}
	garbage := filepath.Join(dir, "garbage")
	if err := os.WriteFile(garbage, []byte("\x7fNOT\x00\x01"), 0o755); err != nil {
		t.Fatal(err)
	}
	for name, test := range map[string]struct {
		options OpenOptions
		reason  Reason
		text    string
		hint    string
	}{
		"missing":                   {OpenOptions{Path: filepath.Join(dir, "none")}, ReasonMissing, "no such file", "install"},
		"directory":                 {OpenOptions{Path: dir}, ReasonNotExecutable, "is a directory", "binary"},
		"not executable":            {OpenOptions{Path: plain}, ReasonNotExecutable, "not executable", "chmod +x"},
		"other machine":             {OpenOptions{Path: garbage}, ReasonNotExecutable, "exec format", "not a program for"},
		"junk":                      {OpenOptions{Path: script(t, "echo hello world; sleep 60")}, ReasonHandshake, `printed "hello world" instead of a handshake`, "describe"},
		"endless junk":              {OpenOptions{Path: script(t, "exec tr '\\0' x </dev/zero")}, ReasonHandshake, "instead of a handshake", "describe"},
		"silent exit":               {OpenOptions{Path: os.Args[0], Env: []string{envMode + "=exit"}}, ReasonExited, "no licence found", "describe"},
		"hang":                      {OpenOptions{Path: os.Args[0], Env: []string{envMode + "=hang"}, StartTimeout: 300 * time.Millisecond}, ReasonTimeout, "no handshake within 300ms", "describe"},
		"newer protocol":            {OpenOptions{Path: os.Args[0], Env: []string{envMode + "=future"}}, ReasonProtocol, "agent speaks protocol 7, this engine speaks 1 and 2", "update the engine"},
		"older protocol":            {OpenOptions{Path: script(t, "echo '1|0|unix|/x|grpc|'; sleep 60")}, ReasonProtocol, "agent speaks protocol 0, this engine speaks 1 and 2", "update the agent"},
		"net/rpc":                   {OpenOptions{Path: script(t, "echo '1|1|unix|/x|netrpc|'; sleep 60")}, ReasonProtocol, "netrpc", "rebuild"},
		"foreign socket":            {OpenOptions{Path: script(t, "echo '1|1|unix|/tmp/other|grpc|'; sleep 60")}, ReasonHandshake, "not in its directory", ""},
		"tcp":                       {OpenOptions{Path: script(t, "echo '1|1|tcp|127.0.0.1:1|grpc|'; sleep 60")}, ReasonHandshake, "not in its directory", ""},
		"nobody listening":          {OpenOptions{Path: script(t, `echo "1|1|unix|$PLUGIN_UNIX_SOCKET_DIR/plugin1|grpc|"; sleep 60`), StartTimeout: 2 * time.Second}, ReasonHandshake, "connect after the handshake", ""},
		"ended after the handshake": {OpenOptions{Path: script(t, `echo "1|1|unix|$PLUGIN_UNIX_SOCKET_DIR/plugin1|grpc|"; exit 1`), StartTimeout: 10 * time.Second}, ReasonExited, "connect after the handshake", ""},
	} {
		t.Run(name, func(t *testing.T) {
			temp := t.TempDir()
			test.options.TempDir = temp
			if test.options.StartTimeout == 0 {
				test.options.StartTimeout = 10 * time.Second
			}
			if len(test.options.Env) == 0 {
				test.options.Env = []string{"PATH=" + os.Getenv("PATH")}
			}
			p, err := Open(t.Context(), test.options)
			if err == nil {
				_ = p.Close()
			}
			wantStartError(t, err, test.reason, test.text, test.hint)
			if left, _ := os.ReadDir(temp); len(left) > 0 {
				t.Errorf("left behind: %v", left)
			}
		})
	}
}

// TestT10DiesAtHandshake: a process that dies before, during or just after its
// handshake is not an agent, and leaves nothing behind.
func TestT10DiesAtHandshake(t *testing.T) {
	scripts := []struct {
		path   string
		reason Reason
	}{
		{script(t, "exit 3"), ReasonExited},
		{script(t, "printf '2|1|un'; exit 0"), ReasonHandshake},
		{script(t, "kill -9 $$"), ReasonExited},
		{script(t, `echo "1|1|unix|$PLUGIN_UNIX_SOCKET_DIR/plugin1|grpc|"; exit 1`), ReasonExited},
	}
	temp := t.TempDir()
	for n := range times(2*len(scripts), 1000) {
		s := scripts[n%len(scripts)]
		p, err := Open(t.Context(), OpenOptions{Path: s.path, TempDir: temp, Env: []string{"PATH=" + os.Getenv("PATH")}, StartTimeout: 10 * time.Second})
		if err == nil {
			_ = p.Close()
		}
		var start *StartError
		if !errors.As(err, &start) || start.Reason != s.reason {
			t.Fatalf("%d: Open = %v, want a *StartError with reason %s", n%len(scripts), err, s.reason)
		}
	}
	if left, err := os.ReadDir(temp); err != nil || len(left) > 0 {
		t.Errorf("left behind: %v, %v", left, err)
	}
}

func TestOpenIsCancelled(t *testing.T) {
	ctx, cancel := context.WithTimeoutCause(t.Context(), time.Hour, nil)
	timer := time.AfterFunc(100*time.Millisecond, cancel)
	defer timer.Stop()
	_, err := Open(ctx, OpenOptions{Path: os.Args[0], Env: []string{envMode + "=hang"}})
	if !errors.Is(err, context.Canceled) {
		t.Errorf("Open = %v, want Canceled", err)
	}
}

func TestOpenOptionsValidate(t *testing.T) {
	for name, o := range map[string]OpenOptions{
		"no path":   {},
		"checksum":  {Path: "x", Checksum: []byte{1}},
		"negative":  {Path: "x", PayloadLimit: -1},
		"few files": {Path: "x", MaxFiles: MinFiles - 1},
		"bad grace": {Path: "x", CloseGrace: -1},
	} {
		t.Run(name, func(t *testing.T) {
			if _, err := Open(t.Context(), o); err == nil || !strings.Contains(err.Error(), "OpenOptions") {
				t.Errorf("Open = %v, want an error that names the option", err)
			}
		})
	}
}

func TestDescribe(t *testing.T) {
	t.Setenv("PLUGIN_TEST_SECRET", "x")
	d, err := Describe(t.Context(), DescribeOptions{Path: os.Args[0]})
	if err != nil {
		t.Fatal(err)
	}
	if d.Name != "test" || d.Version != "1.2.3" || !slices.Equal(d.ProtocolVersions, []int{1, 2}) || len(d.Actions["slow"].Inputs) != 1 {
		t.Errorf("description = %+v", d)
	}
	if err := d.Compatible("x"); err != nil {
		t.Errorf("Compatible: %v", err)
	}
	d.ProtocolVersions = []int{3, 4}
	wantStartError(t, d.Compatible("x"), ReasonProtocol, "agent speaks protocol 3 and 4, this engine speaks 1 and 2", "update the engine")
}

func TestDescribeBadBinary(t *testing.T) {
	for name, test := range map[string]struct {
		path   string
		reason Reason
		text   string
	}{
		"missing":         {filepath.Join(t.TempDir(), "none"), ReasonMissing, "no such file"},
		"junk":            {script(t, "echo hello"), ReasonDescription, `printed "hello\n", which is no description`},
		"other json":      {script(t, "echo '{}'"), ReasonDescription, "names no agent"},
		"no actions":      {script(t, `echo '{"name":"a","version":"1.0.0"}'`), ReasonDescription, "no actions"},
		"exit":            {script(t, "echo no licence >&2; exit 3"), ReasonExited, "no licence"},
		"endless":         {script(t, "while :; do echo xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx$0$0$0$0; done"), ReasonDescription, "more than 4194304 bytes"},
		"sees no secrets": {script(t, `echo "${PATH_TO_SECRET:-none}" >&2; exit 1`), ReasonExited, "none"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Setenv("PATH_TO_SECRET", "leaked")
			_, err := Describe(t.Context(), DescribeOptions{Path: test.path})
			wantStartError(t, err, test.reason, test.text, "")
		})
	}
}

// Run by hand, an agent says what it is and who should start it.
func TestStartedByHand(t *testing.T) {
	path := buildInventory(t)
	var stdout, stderr bytes.Buffer
	cmd := exec.Command(path)
	cmd.Stdout, cmd.Stderr = &stdout, &stderr
	err := cmd.Run()
	var exit *exec.ExitError
	if !errors.As(err, &exit) || exit.ExitCode() != 1 {
		t.Errorf("run = %v, want exit status 1", err)
	}
	for _, want := range []string{`the agent "inventory", version 0.1.0`, "The engine starts it", "describe"} {
		if !strings.Contains(stderr.String(), want) {
			t.Errorf("stderr has no %q:\n%s", want, &stderr)
		}
	}
	if stdout.Len() > 0 {
		t.Errorf("stdout = %q, want nothing", &stdout)
	}
	d, err := Describe(t.Context(), DescribeOptions{Path: path})
	if err != nil || d.Name != "inventory" || !d.Actions["release"].ByKey {
		t.Errorf("Describe = %+v, %v", d, err)
	}
}

func TestServeRefusesABadAgent(t *testing.T) {
	var stderr bytes.Buffer
	a := sdk.New("Bad Name", "1")
	if code := serve(a, nil, &stderr); code != 1 || !strings.Contains(stderr.String(), "agent name") || !strings.Contains(stderr.String(), "no actions") {
		t.Errorf("serve = %d, said %q", code, &stderr)
	}
}
