//go:build unix

package hostile

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"
	"unicode"
	"unicode/utf8"

	"github.com/saga-engine/engine/engine/internal/pgtest"
)

// The limits of one command.
const (
	mostCPU    = 2 * time.Second // of user and system time
	mostMemory = 64 << 20        // bytes of resident memory above the same command on a small module
	mostOutput = 1 << 20         // bytes that it prints
	patience   = 2 * time.Minute // by the clock, on a machine that is busy with other things
)

// canary is what no command may print: cases hide it where secrets are.
const canary = "hunter2-canary"

const (
	envMeasure = "HOSTILE_MEASURE" // this binary measures another program
	envAll     = "HOSTILE"         // "all" = every case
)

// TestMain makes this binary the small program that starts and measures a
// command: the kernel counts what a large parent has in memory as its child's.
func TestMain(m *testing.M) {
	if os.Getenv(envMeasure) != "" {
		os.Exit(measure())
	}
	os.Exit(pgtest.Main(m))
}

// A usage holds the resources that a command used.
type usage struct {
	Exit   int // negative: a signal ended it
	Signal string
	CPU    time.Duration
	Memory int64
}

// A result is the end of a command: output and usage.
type result struct {
	usage
	stdout, stderr string
}

// A bench holds the data that cases share: built programs, and the memory that commands
// use on small modules.
type bench struct {
	dir   string
	bases map[string]int64 // memory of a command on a small module, by its name
}

// newBench builds the command and the agents.
func newBench(t *testing.T) *bench {
	t.Helper()
	b := &bench{dir: t.TempDir(), bases: map[string]int64{}}
	build := exec.Command("go", "build", "-o", b.dir+string(filepath.Separator), "../../../cmd/engine", "../../../plugins/engine-agent-mock", "../../../plugins/engine-agent-exec",
		"./cmd/engine-agent-teller")
	if out, err := build.CombinedOutput(); err != nil {
		t.Fatalf("build: %v\n%s", err, out)
	}
	return b
}

// run runs a command of the engine in a directory.
func (b *bench) run(t *testing.T, dir string, c *hostileCase, args []string) result {
	t.Helper()
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	cmd := exec.CommandContext(ctx, self, append([]string{filepath.Join(b.dir, "engine")}, args...)...)
	cmd.Dir = dir
	report := filepath.Join(t.TempDir(), "usage.json")
	cmd.Env = append([]string{
		envMeasure + "=" + report, "HOME=" + dir, "TMPDIR=" + t.TempDir(), "PATH=" + os.Getenv("PATH"), "CANARY=" + canary,
		"ENGINE_PLUGIN_DIR=" + b.dir, "NO_COLOR=1",
	}, c.env...)
	var stdout, stderr bytes.Buffer
	cmd.Stdout, cmd.Stderr = &stdout, &stderr
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	cmd.Cancel = func() error { return syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL) } // the command and all processes that it started
	cmd.WaitDelay = time.Second
	if c.stdin != "" {
		in, err := os.Open(filepath.Join(dir, c.stdin))
		if err != nil {
			t.Fatal(err)
		}
		defer in.Close()
		cmd.Stdin = in
	}
	if err := cmd.Run(); err != nil {
		t.Fatalf("engine %q: %v (ctx: %v)\n%.2000s", args, err, ctx.Err(), stderr.String())
	}
	r := result{stdout: stdout.String(), stderr: stderr.String()}
	text, err := os.ReadFile(report)
	if err == nil {
		err = json.Unmarshal(text, &r.usage)
	}
	if err != nil {
		t.Fatal(err)
	}
	return r
}

// small is a harmless module that is like the module of a case.
const small = `workflow "w" {
  deadline = "1h"
  step "a" {
    action       = agent.mock.call
    compensation = "none"
    input { value = "x" }
  }
}
`

// base returns how much memory a command takes on a small module.
func (b *bench) base(t *testing.T, args []string) int64 {
	t.Helper()
	verb := args[0]
	if n, ok := b.bases[verb]; ok {
		return n
	}
	dir := t.TempDir()
	if err := os.WriteFile(filepath.Join(dir, "main.hcl"), []byte(small), 0o644); err != nil {
		t.Fatal(err)
	}
	on := map[string][]string{
		"apply": {"apply", "."}, "plan": {"plan", "."}, "graph": {"graph", "."}, "init": {"init", "."}, "fmt": {"fmt", "--check", "main.hcl"},
	}[verb]
	if on == nil {
		on = []string{"validate", "."}
	}
	n := int64(0)
	for range 2 { // the second command uses the caches of the first
		n = max(n, b.run(t, dir, &hostileCase{}, on).Memory)
	}
	b.bases[verb] = n
	return n
}

// hold fails the test if a command has passed a limit or printed what it must not.
func (b *bench) hold(t *testing.T, c *hostileCase, args []string, r result) {
	t.Helper()
	all := r.stdout + r.stderr
	fail := func(format string, a ...any) {
		t.Helper()
		t.Errorf("engine %q: %s\n# %s\n%.1500s", args, fmt.Sprintf(format, a...), c.why, all)
	}
	if r.Exit < 0 {
		fail("ended by signal %s", r.Signal)
	}
	if len(c.exits) > 0 && !c.right(r.Exit) || r.Exit > 7 {
		fail("exit code %d, want one of %v", r.Exit, c.exits)
	}
	if r.Exit != 0 && strings.TrimSpace(all) == "" {
		fail("exit code %d without a word", r.Exit)
	}
	if r.CPU > mostCPU {
		fail("took %s of CPU time, want at most %s", r.CPU, mostCPU)
	}
	t.Logf("engine %q: %d MiB of memory, %s of CPU time", args, r.Memory>>20, r.CPU)
	if base := b.base(t, args); r.Memory > base+mostMemory {
		fail("took %d MiB of memory, want at most %d MiB above the %d MiB of a small module", r.Memory>>20, mostMemory>>20, base>>20)
	}
	if len(all) > mostOutput {
		fail("printed %d bytes", len(all))
	}
	for _, bad := range []string{"panic:", "fatal error:", "goroutine ", "runtime error", canary} {
		if strings.Contains(all, bad) {
			fail("prints %q", bad)
		}
	}
	if !utf8.ValidString(all) {
		fail("prints what is not UTF-8")
	}
	for _, x := range all {
		if unicode.IsControl(x) && x != '\n' && x != '\t' || unicode.Is(unicode.Bidi_Control, x) {
			fail("prints the control character %U", x)
			break
		}
	}
	for _, want := range c.says {
		if !strings.Contains(all, want) {
			fail("does not say %q", want)
		}
	}
}

// On every case the command ends soon, in little memory, and with a message (T19 T20
// T21).
func TestHostile(t *testing.T) {
	files, err := filepath.Glob("../../../testdata/hostile/*.txtar")
	if err != nil || len(files) == 0 {
		t.Fatalf("%d cases, %v", len(files), err)
	}
	b := newBench(t)
	for i, file := range files {
		if os.Getenv(envAll) != "all" && i%32 != 0 {
			continue
		}
		t.Run(strings.TrimSuffix(filepath.Base(file), ".txtar"), func(t *testing.T) {
			c, err := readCase(file)
			if err != nil {
				t.Fatal(err)
			}
			dir := t.TempDir()
			if err := c.lay(dir, func(args []string) error {
				if r := b.run(t, dir, &hostileCase{}, args); r.Exit != 0 {
					return fmt.Errorf("engine %q: exit code %d\n%s", args, r.Exit, r.stdout+r.stderr)
				}
				return nil
			}); err != nil {
				t.Fatal(err)
			}
			for _, args := range c.runs {
				b.hold(t, c, args, b.run(t, dir, c, args))
			}
		})
	}
}

// Every case can be read, says why it is there, and no two say the same.
func TestCasesSayWhy(t *testing.T) {
	files, err := filepath.Glob("../../../testdata/hostile/*.txtar")
	if err != nil {
		t.Fatal(err)
	}
	if len(files) < 200 {
		t.Errorf("%d cases, want at least 200", len(files))
	}
	seen := map[string]string{}
	for _, file := range files {
		c, err := readCase(file)
		switch {
		case err != nil:
			t.Error(err)
		case seen[c.why] != "":
			t.Errorf("%s and %s say the same", file, seen[c.why])
		default:
			seen[c.why] = file
		}
	}
}

// A case that hits a limit is noticed: the limits are not idle.
func TestLimitsBite(t *testing.T) {
	b := newBench(t)
	dir := t.TempDir()
	c := &hostileCase{why: "none", exits: []int{0}}
	if err := os.WriteFile(filepath.Join(dir, "main.hcl"), []byte(small), 0o644); err != nil {
		t.Fatal(err)
	}
	r := b.run(t, dir, c, []string{"validate", "."})
	if r.Exit != 0 || r.CPU <= 0 || r.Memory < 4<<20 {
		t.Fatalf("%+v: nothing was measured", r)
	}
	if r = b.run(t, dir, c, []string{"validate", "nowhere"}); r.Exit != 1 || r.stderr == "" {
		t.Fatalf("%+v, want exit code 1 and a message", r)
	}
}

var errSyntax = errors.New("syntax")
