package main

import (
	"bufio"
	"bytes"
	"encoding/json"
	"fmt"
	"hash/fnv"
	"maps"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/saga-engine/engine/cmd/engine/internal/exit"
)

// matrixSeed chooses the sample and the commands with which runs are brought to their end.
const matrixSeed = 7

// A matrixCase is one run to which a verb is given.
type matrixCase struct {
	feature matrixFeature
	verb    matrixVerb
	inner   bool // the verb goes to the open groups and child runs of the run
	name    string
	rng     *rand.Rand
	settled bool // a person has stated what happened, which may be wrong
}

// A matrix is a state with one engine, and the runs of all cases.
type matrix struct {
	t   *testing.T
	dir string

	// quiet is held for writing while the encryption key is changed: until an engine has begun with the new
	// key, a command with this key is refused.
	quiet sync.RWMutex

	// calls is held for reading while a call is in flight whose end a dead engine would not see.
	calls sync.RWMutex

	mu     sync.Mutex // protects the fields below
	engine *exec.Cmd
	starts int
	ended  int // cases that have ended
}

// Every verb on runs with every feature of the language: the verb is accepted, or its refusal names a command
// that is accepted, each view can be read, and the run comes to an end with the commands that
// `engine explain` offers. MATRIX=all tries all pairs, otherwise a sample is tried. MATRIX=NAME tries the
// run with this name, which is FEATURE-VERB or FEATURE-VERB-inner.
func TestMatrix(t *testing.T) {
	t.Setenv("ENGINE_PLUGIN_DIR", os.Getenv(envAgents))
	t.Setenv("ENGINE_DSN", "")
	m := &matrix{t: t, dir: t.TempDir()}
	m.modules()
	m.start()
	defer m.kill()
	m.must("apply", "rate", "--workflow", "rate", "--run-id", "rate-first", "--detach")
	m.drive(&matrixCase{name: "rate", rng: rand.New(rand.NewPCG(matrixSeed, 0))}) // it takes the only call of this day
	m.must("publish", "event")

	cases := matrixCases(t)
	slots := make(chan struct{}, 16)
	var group sync.WaitGroup
	for _, c := range cases {
		slots <- struct{}{}
		group.Add(1)
		go func() {
			defer func() { <-slots; group.Done() }()
			m.play(c)
			m.another(len(cases))
		}()
	}
	group.Wait()
	m.results(cases)
}

// matrixCases returns the cases that the variable MATRIX selects.
func matrixCases(t *testing.T) []*matrixCase {
	want := os.Getenv("MATRIX")
	rng := rand.New(rand.NewPCG(matrixSeed, 0))
	var all, sample []*matrixCase
	for _, f := range matrixFeatures {
		var of []*matrixCase
		for _, v := range matrixVerbs {
			for _, inner := range []bool{false, true} {
				if inner && f.kids == 0 {
					continue
				}
				name := f.name + "-" + v.name
				if inner {
					name += "-inner"
				}
				h := fnv.New64a()
				_, _ = h.Write([]byte(name)) // never fails
				of = append(of, &matrixCase{feature: f, verb: v, inner: inner, name: name, rng: rand.New(rand.NewPCG(matrixSeed, h.Sum64()))})
			}
		}
		all = append(all, of...)
		rng.Shuffle(len(of), func(i, k int) { of[i], of[k] = of[k], of[i] })
		sample = append(sample, of[0])
	}
	switch want {
	case "":
		return sample
	case "all":
		rng.Shuffle(len(all), func(i, k int) { all[i], all[k] = all[k], all[i] })
		return append(slices.DeleteFunc(slices.Clone(all), func(c *matrixCase) bool { return !c.feature.early }),
			slices.DeleteFunc(all, func(c *matrixCase) bool { return c.feature.early })...)
	}
	match := regexp.MustCompile("^(" + want + ")$")
	all = slices.DeleteFunc(all, func(c *matrixCase) bool { return !match.MatchString(c.name) })
	if len(all) == 0 {
		t.Fatalf("MATRIX=%s selects no run", want)
	}
	return all
}

// Parts of the files of testdata/matrix.
var (
	topBlock    = regexp.MustCompile(`(?ms)^(\w+) "(\w+)" \{ .*?\}\n|^(\w+) "(\w+)" \{\n.*?^\}\n`)
	startsChild = regexp.MustCompile(`= workflow\.(\w+)`)
	firstLine   = regexp.MustCompile(`(?m)^(workflow "\w+" \{)$`)
)

// modules writes a module for each feature, with the workflow of the feature and what this workflow uses. A
// command reads the whole module of a run, so one module for all features would take most of the time of the
// test. A second version of the module has one step more.
func (m *matrix) modules() {
	m.t.Helper()
	blocks := map[string]string{} // by the kind and the name
	files, err := filepath.Glob(filepath.Join("testdata", "matrix", "*.hcl"))
	if err != nil {
		m.t.Fatal(err)
	}
	for _, f := range files {
		for _, b := range topBlock.FindAllStringSubmatch(m.source(f), -1) {
			blocks[b[1]+b[3]+"."+b[2]+b[4]] = b[0]
		}
	}
	for _, f := range matrixFeatures {
		text := blocks["workflow."+f.name]
		for _, child := range startsChild.FindAllStringSubmatch(text, -1) {
			text += blocks["workflow."+child[1]]
		}
		for _, name := range slices.Sorted(maps.Keys(blocks)) {
			kind, _, _ := strings.Cut(name, ".")
			if kind == "variable" || kind != "workflow" && strings.Contains(text, name+".") {
				text = blocks[name] + text
			}
		}
		m.write(filepath.Join(f.name, "a.hcl"), text)
		text = firstLine.ReplaceAllString(text, "$1\n  step \"added\" { value = 2 }")
		m.write(filepath.Join(f.name, "next", "a.hcl"), strings.ReplaceAll(text, `"../shared"`, `"../../shared"`))
	}
	m.write(filepath.Join("shared", "shop.hcl"), m.source(filepath.Join("testdata", "matrix", "shared", "shop.hcl")))
}

// source reads a file of the test, with the place of the ledger.
func (m *matrix) source(path string) string {
	data, err := os.ReadFile(path)
	if err != nil {
		m.t.Fatal(err)
	}
	return strings.ReplaceAll(string(data), "LEDGER", filepath.Join(m.dir, "ledger"))
}

func (m *matrix) write(path, text string) {
	path = filepath.Join(m.dir, path)
	err := os.MkdirAll(filepath.Dir(path), 0o700)
	if err == nil {
		err = os.WriteFile(path, []byte(text), 0o600)
	}
	if err != nil {
		m.t.Fatal(err)
	}
}

// dsn returns the place of the state, which the modules share.
func (m *matrix) dsn() string { return "sqlite:" + filepath.Join(m.dir, "state.db") }

// do runs one command line in the directory of the state, without the word "engine".
func (m *matrix) do(args ...string) (code int, out, errs string) {
	m.quiet.RLock()
	defer m.quiet.RUnlock()
	var o, e bytes.Buffer
	code = run(m.t.Context(), append([]string{"--chdir", m.dir, "--dsn", m.dsn()}, args...), strings.NewReader(""), &o, &e)
	return code, o.String(), e.String()
}

// must runs a command line that is accepted.
func (m *matrix) must(args ...string) string {
	code, out, errs := m.do(args...)
	if code != exit.OK {
		m.t.Errorf("engine %s: exit code %d\n%s", strings.Join(args, " "), code, errs)
	}
	return out
}

// start starts an engine, and waits until it serves the state.
func (m *matrix) start() {
	path := filepath.Join(m.dir, "serve.log")
	log, err := os.OpenFile(path, os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
	if err != nil {
		m.t.Error(err)
		return
	}
	defer log.Close()
	m.engine = exec.Command("engine", "--chdir", m.dir, "--dsn", m.dsn(), "serve")
	m.engine.Stderr = log
	if err := m.engine.Start(); err != nil {
		m.t.Error(err)
		return
	}
	m.starts++
	for end := time.Now().Add(patience); ; time.Sleep(20 * time.Millisecond) {
		data, err := os.ReadFile(path)
		if bytes.Count(data, []byte(`msg=serving`)) == m.starts {
			return
		}
		if time.Now().After(end) {
			m.t.Errorf("the engine does not start: %v\n%s", err, data)
			return
		}
	}
}

func (m *matrix) kill() {
	_ = m.engine.Process.Kill() // it may have ended
	_ = m.engine.Wait()
}

// another counts a case that has ended. After each third of the cases it kills the engine and starts another
// one, the first time with a new encryption key.
func (m *matrix) another(of int) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.ended++
	if of < 3 || m.ended%(of/3) != 0 || m.starts == 3 {
		return
	}
	m.calls.Lock()
	defer m.calls.Unlock()
	if m.starts == 1 {
		key := m.must("key", "new")
		m.quiet.Lock()
		defer m.quiet.Unlock()
		file := filepath.Join(m.dir, "state.db.key")
		before, err := os.ReadFile(file)
		if err == nil {
			err = os.WriteFile(file, append([]byte(strings.TrimSpace(key)+"\n"), before...), 0o600)
		}
		if err != nil {
			m.t.Error(err)
		}
	}
	m.kill()
	m.start()
}

// A matrixRun is a run as `engine list --json` shows it.
type matrixRun struct{ Run, Workflow, Status, Key string }

func (m *matrix) list(flags ...string) []matrixRun {
	var doc struct{ Runs []matrixRun }
	m.parse(&doc, append([]string{"list", "--json", "--limit", "10000"}, flags...)...)
	return doc.Runs
}

// parse reads the one object that a command prints.
func (m *matrix) parse(to any, args ...string) bool {
	out := m.must(args...)
	if err := json.Unmarshal([]byte(out), to); err != nil {
		m.t.Errorf("engine %s: %v\n%s", strings.Join(args, " "), err, out)
		return false
	}
	return true
}

// family returns the open runs of a case, an outer run before its groups and child runs.
func (m *matrix) family(c *matrixCase) []matrixRun {
	runs := slices.DeleteFunc(m.list("--status", "open"), func(r matrixRun) bool {
		root, _, _ := strings.Cut(r.Run, ".")
		return root != c.name && root != c.name+"-first" && root != c.name+"-again"
	})
	slices.SortFunc(runs, func(a, b matrixRun) int { return strings.Compare(a.Run, b.Run) })
	return runs
}

// ledger returns the effects of each run that were made and not undone: the step, by the idempotency key.
func (m *matrix) ledger() map[string]map[string]string {
	f, err := os.Open(filepath.Join(m.dir, "ledger"))
	if err != nil {
		m.t.Fatal(err)
	}
	defer f.Close()
	out := map[string]map[string]string{}
	for lines := bufio.NewScanner(f); lines.Scan(); {
		var e struct{ Kind, Purpose, Key, Forward, Run, Step string }
		if err := json.Unmarshal(lines.Bytes(), &e); err != nil {
			m.t.Fatal(err)
		}
		if out[e.Run] == nil {
			out[e.Run] = map[string]string{}
		}
		switch {
		case e.Kind != "applied":
		case e.Purpose == "undo":
			delete(out[e.Run], e.Forward)
		default:
			out[e.Run][e.Key] = e.Step
		}
	}
	return out
}

func (m *matrix) errorf(c *matrixCase, format string, args ...any) {
	if known[c.name] == "" {
		m.t.Errorf("%s: %s", c.name, fmt.Sprintf(format, args...))
	}
}
