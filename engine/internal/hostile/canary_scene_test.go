//go:build unix

package hostile

import (
	"bufio"
	"bytes"
	"context"
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"
)

func newPlaces() *places { return &places{file: map[string]any{}, files: map[string]string{}} }

// given writes the file of variables, and returns the flags that give all values to a run.
func (p *places) given(t *testing.T, s *scene) []string {
	t.Helper()
	vars, err := json.Marshal(p.file)
	if err != nil {
		t.Fatal(err)
	}
	// What a person knows is not in the module's directory.
	values := filepath.Join(t.TempDir(), "values.json")
	if err := os.WriteFile(values, vars, 0o600); err != nil {
		t.Fatal(err)
	}
	return append([]string{"--var-file", values}, p.args...)
}

// A scene is a module with its state. It keeps all that can be read of the runs in this state.
type scene struct {
	program  string
	dir      string // the module's directory; the embedded state is in it
	env      []string
	stdin    string
	surfaces map[string][]byte
	dump     func(t *testing.T) map[string][]byte // what a state outside of dir holds; nil = there is none
}

func encryptionKey(b byte) string {
	return base64.StdEncoding.EncodeToString(bytes.Repeat([]byte{b}, 32))
}

// newScene writes the files of a module.
func newScene(t *testing.T, b *bench, files map[string]string, env []string) *scene {
	t.Helper()
	s := &scene{program: filepath.Join(b.dir, "engine"), dir: t.TempDir(), surfaces: map[string][]byte{}}
	for name, text := range files {
		file := filepath.Join(s.dir, name)
		if err := errors.Join(os.MkdirAll(filepath.Dir(file), 0o700), os.WriteFile(file, []byte(text), 0o600)); err != nil {
			t.Fatal(err)
		}
	}
	s.env = append([]string{
		"HOME=" + t.TempDir(), "PATH=" + os.Getenv("PATH"), "TMPDIR=" + t.TempDir(), "ENGINE_PLUGIN_DIR=" + b.dir, "NO_COLOR=1", "ENGINE_LOG=debug",
		"ENGINE_ENCRYPTION_KEY=" + encryptionKey(7),
	}, env...)
	return s
}

// run runs a command that exits with 0, and returns its standard output.
func (s *scene) run(t *testing.T, args ...string) []byte {
	t.Helper()
	return s.exits(t, 0, args...)
}

// exits runs a command that exits with the given code, and returns its standard output.
func (s *scene) exits(t *testing.T, code int, args ...string) []byte {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	cmd := exec.CommandContext(ctx, s.program, args...)
	cmd.Dir, cmd.Env, cmd.Stdin = s.dir, s.env, strings.NewReader(s.stdin)
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	cmd.Cancel = func() error { return syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL) }
	var stdout, stderr bytes.Buffer
	cmd.Stdout, cmd.Stderr = &stdout, &stderr
	err := cmd.Run()
	out := append(slices.Clone(stdout.Bytes()), stderr.Bytes()...)
	if cmd.ProcessState == nil || cmd.ProcessState.ExitCode() != code {
		t.Errorf("engine %.40q: %v, want exit code %d\n…%s", args[:min(len(args), 3)], err, code, out[max(0, len(out)-3000):])
	}
	s.surfaces[fmt.Sprintf("engine %.40q (command %d)", args[:min(len(args), 3)], len(s.surfaces))] = out
	return stdout.Bytes()
}

// evaluate asks the console for the values of a run.
func (s *scene) evaluate(t *testing.T, run string, all []hidden) {
	t.Helper()
	for _, h := range all {
		if h.expr != "" {
			s.stdin += h.expr + "\njsonencode(" + h.expr + ")\n"
		}
	}
	s.run(t, "console", ".", "--run", run)
	s.run(t, "console", ".", "--run", run, "--json")
	s.stdin = ""
}

// masked returns how many outputs of `engine show` have something in place of a value.
func (s *scene) masked() (n int) {
	for name, text := range s.surfaces {
		if strings.HasPrefix(name, `engine ["show"`) && bytes.Contains(text, []byte("(sensitive)")) {
			n++
		}
	}
	return n
}

// search fails the test for each value that can be read: in what commands have printed, in what the
// engine has logged and served, in the files of the module's directory, and in the state.
func (s *scene) search(t *testing.T, all []hidden) {
	t.Helper()
	err := filepath.WalkDir(s.dir, func(path string, d fs.DirEntry, err error) error {
		if err != nil || !d.Type().IsRegular() || d.Name() == "main.hcl" || strings.HasPrefix(d.Name(), "secret-") {
			return err
		}
		data, err := os.ReadFile(path)
		s.surfaces[filepath.Base(path)] = data
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	if s.dump != nil {
		for name, data := range s.dump(t) {
			s.surfaces[name] = data
			s.surfaces[name+", decoded"] = decoded(data)
		}
	}
	for _, found := range find(all, s.surfaces) {
		t.Error(found)
	}
	size := 0
	for _, data := range s.surfaces {
		size += len(data)
	}
	t.Logf("%d canaries, %d surfaces, %d MB", len(all), len(s.surfaces), size/1_000_000)
}

// beginning is the number of bytes by which the forms of values are looked up.
const beginning = 12

// find returns a sentence for each value and each surface in which this value can be read.
func find(all []hidden, surfaces map[string][]byte) (found []string) {
	type form struct {
		of   int // index in `all`
		text []byte
	}
	forms, starts := map[string][]form{}, map[string]bool{} // by the beginning of a form; the first four bytes of all forms
	for i, h := range all {
		for _, text := range h.forms() {
			forms[text[:beginning]] = append(forms[text[:beginning]], form{i, []byte(text)})
			starts[text[:4]] = true
		}
	}
	for name, data := range surfaces {
		seen := map[int]bool{}
		for start := range starts {
			for at := 0; ; at++ {
				next := bytes.Index(data[at:], []byte(start))
				if next < 0 {
					break
				}
				at += next
				if len(data)-at < beginning {
					break
				}
				for _, f := range forms[string(data[at:at+beginning])] {
					if !seen[f.of] && bytes.HasPrefix(data[at:], f.text) {
						seen[f.of] = true
						found = append(found, fmt.Sprintf("%s as %s shows in %s: …%.120q", all[f.of].source, all[f.of].sink, name, data[max(0, at-60):min(len(data), at+60)]))
					}
				}
			}
		}
	}
	return found
}

var hexBytes = regexp.MustCompile(`\\x[0-9a-f]{2,}`)

// decoded returns the bytes that PostgreSQL shows as hexadecimal digits.
func decoded(data []byte) (out []byte) {
	for _, digits := range hexBytes.FindAll(data, -1) {
		digits = digits[2:]
		bytes := make([]byte, len(digits)/2)
		n, _ := hex.Decode(bytes, digits[:len(digits)/2*2]) // the expression lets only digits pass
		out = append(append(out, bytes[:n]...), '\n')
	}
	return out
}

// An engineProcess is `engine serve` of a scene.
type engineProcess struct {
	s     *scene
	cmd   *exec.Cmd
	end   context.CancelFunc
	lines chan string   // lines of its log
	log   *bytes.Buffer // complete when lines is closed
	url   string        // of its metrics
}

var listening = regexp.MustCompile(`msg=listening http=(\S+)`)

// serve starts an engine, and waits until it works.
func (s *scene) serve(t *testing.T) *engineProcess {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 3*time.Minute)
	t.Cleanup(cancel)
	e := &engineProcess{s: s, end: cancel, lines: make(chan string, 1<<17), log: &bytes.Buffer{}}
	e.cmd = exec.CommandContext(ctx, s.program, "serve", ".", "--http", "127.0.0.1:0")
	e.cmd.Dir, e.cmd.Env = s.dir, s.env
	e.cmd.Cancel = func() error { return e.cmd.Process.Signal(syscall.SIGTERM) } // the engine ends its agents
	stderr, err := e.cmd.StderrPipe()
	if err == nil {
		err = e.cmd.Start()
	}
	if err != nil {
		t.Fatal(err)
	}
	go func() {
		defer close(e.lines)
		scan := bufio.NewScanner(io.TeeReader(stderr, e.log))
		scan.Buffer(nil, 1<<20)
		for scan.Scan() {
			e.lines <- scan.Text()
		}
	}()
	for line := range e.lines {
		if m := listening.FindStringSubmatch(line); m != nil {
			e.url = "http://" + m[1] + "/metrics"
			return e
		}
	}
	t.Fatalf("the engine ended:\n…%s", e.log.Bytes()[max(0, e.log.Len()-3000):])
	return nil
}

// await waits until the log has had, for each expression, that many lines. It reads only lines that
// no earlier call has read.
func (e *engineProcess) await(t *testing.T, want map[string]int) {
	t.Helper()
	left := map[*regexp.Regexp]int{}
	for expr, n := range want {
		left[regexp.MustCompile(expr)] = n
	}
	for line := range e.lines {
		for expr := range left {
			if !expr.MatchString(line) {
				continue
			}
			if left[expr]--; left[expr] == 0 {
				delete(left, expr)
			}
		}
		if len(left) == 0 {
			return
		}
	}
	t.Fatalf("the engine ended, and these lines of its log are missing: %v\n…%s", left, e.log.Bytes()[max(0, e.log.Len()-3000):])
}

// stop reads the metrics and ends the engine.
func (e *engineProcess) stop(t *testing.T) {
	t.Helper()
	reply, err := http.Get(e.url)
	if err != nil {
		t.Fatal(err)
	}
	metrics, err := io.ReadAll(reply.Body)
	if err = errors.Join(err, reply.Body.Close()); err != nil {
		t.Fatal(err)
	}
	e.end()
	for range e.lines { // to the end of the log
	}
	if err := e.cmd.Wait(); !bytes.Contains(metrics, []byte("engine_runs")) {
		t.Fatalf("the engine served %q and ended with %v:\n…%s", metrics, err, e.log.Bytes()[max(0, e.log.Len()-3000):])
	}
	e.s.surfaces["the log of engine serve"], e.s.surfaces["metrics"] = e.log.Bytes(), metrics
}

// The search finds a value in each form in which it could be read, and finds no other one.
func TestCanariesAreFound(t *testing.T) {
	var all []hidden
	for n := range 300 {
		all = append(all, hidden{source: fmt.Sprint(n), sink: "text", value: canaryValue([]string{plainShape, escapedShape}[n%2], n)})
	}
	if found := find(all, map[string][]byte{"nothing": []byte("hush is no canary, and neither is hush0000ffffhush")}); len(found) != 0 {
		t.Errorf("found %q, want nothing", found)
	}
	for n := 0; n < len(all); n += 13 {
		for _, form := range all[n].forms() {
			inBytes := decoded(fmt.Appendf(nil, `engine.journal (1,"\\x%x")`, "before "+form))
			for name, data := range map[string][]byte{"a text": []byte("before " + form), "bytes of a database": inBytes} {
				want := fmt.Sprintf("%d as text shows in %s: ", n, name)
				if found := find(all, map[string][]byte{name: data}); len(found) != 1 || !strings.HasPrefix(found[0], want) {
					t.Errorf("%q: found %q, want %q", data, found, want)
				}
			}
		}
	}
}
