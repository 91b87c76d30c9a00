package main

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"time"

	"github.com/saga-engine/engine/cmd/engine/internal/exit"
)

// play starts the run of a case, gives it the verb while the feature is active, and brings it to its end.
func (m *matrix) play(c *matrixCase) {
	if c.feature.calls {
		m.calls.RLock()
		defer m.calls.RUnlock()
	}
	if !m.submit(c) {
		return
	}
	runs := m.family(c)
	for _, r := range runs {
		m.views(c, r.Run)
	}
	for _, r := range runs {
		inner := strings.Contains(r.Run, ".")
		if strings.Contains(r.Run, "-first") || inner != c.inner {
			continue
		}
		for _, line := range c.verb.lines {
			m.give(c, r.Run, line)
		}
	}
	for _, r := range runs {
		m.views(c, r.Run)
	}
	m.drive(c)
	for _, line := range c.verb.after {
		for _, r := range runs {
			if !strings.Contains(r.Run, "-first") && strings.Contains(r.Run, ".") == c.inner {
				m.give(c, r.Run, line)
			}
		}
		m.drive(c)
	}
}

// submit records the run of a case and waits until its feature is active.
func (m *matrix) submit(c *matrixCase) bool {
	var names []string
	if c.feature.first {
		names = []string{c.name + "-first"}
	}
	names = append(names, c.name)
	for _, name := range names {
		if c.feature.name == "event" {
			m.must("event", "send", "com.example.placed", "--id", name, "--data", `{"order":"`+name+`"}`)
			c.name = "event:" + name // the engine makes this name from the id of the event
			name = c.name
		} else {
			m.must("apply", c.feature.name, "--workflow", c.feature.name, "--run-id", name, "--var", "name="+c.name, "--detach")
		}
		f := c.feature
		if name != c.name { // it becomes active as a run that waits for nothing
			f.shows = waitsFor + "|" + undoFailed + "|at runs: attempt|waits for agent narrow"
		}
		if !m.active(c, name, f) {
			return false
		}
	}
	return true
}

// active waits until a run and its groups and child runs show that the feature is active.
func (m *matrix) active(c *matrixCase, name string, f matrixFeature) bool {
	shows := regexp.MustCompile(f.shows)
	text := ""
	for end := time.Now().Add(patience); time.Now().Before(end); time.Sleep(20 * time.Millisecond) {
		var names []string
		for _, r := range m.family(c) {
			if root, _, _ := strings.Cut(r.Run, "."); root == name {
				names = append(names, r.Run)
			}
		}
		ready := len(names) == 1+f.kids
		if !ready {
			text = fmt.Sprintf("its open runs are %q", names)
		}
		for i, n := range names {
			outer := i+1 < len(names) && strings.HasPrefix(names[i+1], n+".")
			if ready && !outer {
				x := m.explain(n)
				text = x.Text
				ready = shows.MatchString(text)
			}
		}
		if ready {
			return true
		}
	}
	m.errorf(c, "run %s does not come to its feature: %s", name, text)
	return false
}

// An explanation is what `engine explain --json` prints.
type explanation struct {
	Status, Text string
	Sentences    []string
	Remedies     []string
	Through      []string `json:"needs_person_through"`
}

func (m *matrix) explain(run string) explanation {
	var x explanation
	m.parse(&x, "explain", run, "--json")
	return x
}

var (
	// faulty matches marks of a text that was put together wrongly.
	faulty = regexp.MustCompile("%!|<nil>|panic|[a-z.,;:)] {2,}[A-Za-z]| [.,;](\\s|$)|\"\"|``|\\(\\)")
	// quotedLine matches a line of a workflow in a warning.
	quotedLine = regexp.MustCompile(`^ *\d+: `)
	// nextCommand matches a command in backquotes.
	nextCommand = regexp.MustCompile("`(engine [^`]+)`")
	// signalCommand matches the command that a sentence about a step that waits has.
	signalCommand = regexp.MustCompile(`engine signal ('[^']*'|\S)+ ('[^']*'|\S)+ --data JSON`)
	// waits matches an explanation that says for what a run waits.
	waits = regexp.MustCompile(`waits|wait for|runs: attempt|tried again|cools down|iteration|is ready and starts|is asked|goes on`)
)

// readable checks a text for people.
func (m *matrix) readable(c *matrixCase, what, text string) {
	for _, line := range strings.Split(text, "\n") {
		if faulty.MatchString(strings.TrimSpace(line)) && !quotedLine.MatchString(line) {
			m.errorf(c, "%s: %q", what, line)
		}
	}
}

// views reads a run in each way.
func (m *matrix) views(c *matrixCase, run string) {
	for _, args := range [][]string{
		{"show", run},
		{"show", run, "--events"},
		{"explain", run},
		{"logs", run},
		{"console", c.feature.name, "--run", run},
		{"show", run, "--json"},
		{"logs", run, "--json"},
	} {
		code, out, errs := m.do(args...)
		if code != exit.OK {
			m.errorf(c, "engine %s: exit code %d\n%s", strings.Join(args, " "), code, errs)
		}
		if strings.Contains(out, "%!") || strings.Contains(out, "<nil>") {
			m.errorf(c, "engine %s:\n%s", strings.Join(args, " "), out)
		}
		if slices.Contains(args, "--json") && !json.Valid([]byte(out)) {
			m.errorf(c, "engine %s is not JSON:\n%s", strings.Join(args, " "), out)
		}
	}
	x := m.explain(run)
	m.readable(c, "engine explain "+run, strings.Join(x.Sentences, "\n"))
	switch x.Status {
	case "waiting", "running", "queued":
		if x.Status == "waiting" && !waits.MatchString(x.Text) {
			m.errorf(c, "engine explain %s does not say for what the run waits: %s", run, x.Text)
		}
	case "paused", "parked", "compensation_failed":
		if len(x.Remedies) == 0 {
			m.errorf(c, "engine explain %s names no command: %s", run, x.Text)
		}
	}
}

// give gives a verb to a run. If the verb is refused, one of the commands that the refusal names is tried.
func (m *matrix) give(c *matrixCase, run, line string) {
	step := "at"
	if c.inner {
		step = "in"
	}
	line = strings.NewReplacer("RUN", run, "STEP", step, "MODULE", c.feature.name).Replace(line)
	for end := time.Now().Add(patience); ; time.Sleep(20 * time.Millisecond) {
		code, out, errs := m.line(c, line)
		m.readable(c, line, errs)
		if code == exit.OK {
			return
		}
		text := strings.Join(strings.Fields(errs), " ")
		next := nextCommand.FindAllStringSubmatch(text, -1)
		if code != exit.Failed || len(next) == 0 {
			m.errorf(c, "engine %s: exit code %d, no next command\n%s%s", line, code, out, errs)
			return
		}
		offer := next[c.rng.IntN(len(next))][1]
		command := fill(offer)
		if to := strings.Fields(command)[1:]; len(to) > 1 && to[0] != run && slices.Contains([]string{"--step", "--to"}, to[1]) {
			if _, flags, ok := strings.Cut(line, " --step "+step); ok {
				command += flags
			}
			m.give(c, to[0], command) // the run that the refusal names may refuse the verb for another reason
			return
		}
		if strings.HasPrefix(command, "restart") {
			command += " --run-id " + c.name + "-again"
		}
		if command == "serve" || strings.HasPrefix(command, "apply") {
			return // an engine is started by the test
		}
		got, _, why := m.line(c, command)
		if got == exit.OK || strings.Contains(offer, "--from STEP") { // a person chooses the step
			return
		}
		if time.Now().After(end) { // otherwise the run may have changed in between
			m.errorf(c, "engine %s offers %q, which is refused:\n%s\n%s", line, command, errs, why)
			return
		}
	}
}

// fill replaces the words in capitals of a command line, and removes the word "engine". A command that asks
// a person gets the flag with which it does not ask.
func fill(line string) string {
	line = strings.TrimPrefix(line, "engine ")
	if strings.HasPrefix(line, "migrate") || strings.HasPrefix(line, "restart") {
		line += " --yes"
	}
	return strings.NewReplacer("TEXT", "x", "--output JSON", `--output {"value":1}`, "--data JSON", `--data {"by":"ann"}`, "STEP", "at").Replace(line)
}

// line runs a command line in which words may be quoted as for a shell.
func (m *matrix) line(c *matrixCase, line string) (code int, out, errs string) {
	var args []string
	word, quoted := "", false
	for _, r := range line + " " {
		switch {
		case r == '\'':
			quoted = !quoted
		case r == ' ' && !quoted:
			args = append(args, word)
			word = ""
		default:
			word += string(r)
		}
	}
	c.settled = c.settled || args[0] == "settle"
	return m.do(args...)
}

// mostCommands is how many commands may be necessary until a run ends.
const mostCommands = 30

// drive brings the runs of a case to their end, with commands that `engine explain` offers.
func (m *matrix) drive(c *matrixCase) {
	gates := map[string]bool{}
	var said []string
	for end := time.Now().Add(patience); ; {
		runs := m.family(c)
		if len(runs) == 0 {
			return
		}
		if time.Now().After(end) || len(said) > mostCommands {
			m.errorf(c, "the runs do not end: %v after %q\n%s", runs, said, m.explain(runs[len(runs)-1].Run).Text)
			return
		}
		c.rng.Shuffle(len(runs), func(i, k int) { runs[i], runs[k] = runs[k], runs[i] })
		acted := false
		for _, r := range runs {
			if acted = m.follow(c, r.Run, &said); acted {
				end = time.Now().Add(patience)
				break
			}
		}
		for _, r := range runs {
			if !acted && !gates[r.Run] { // a call waits for this file
				gates[r.Run] = true
				if err := os.WriteFile(filepath.Join(m.dir, r.Run+".gate"), nil, 0o600); err != nil {
					m.errorf(c, "%v", err)
				}
			}
		}
		if !acted {
			time.Sleep(20 * time.Millisecond)
		}
	}
}

// decisive matches commands after which a run comes to its end.
var decisive = regexp.MustCompile(`--skip|--undone|^engine (compensate \S+$|cancel|resume|signal)`)

// follow gives a run one of the commands that `engine explain` offers. It returns false if there is none.
func (m *matrix) follow(c *matrixCase, run string, said *[]string) bool {
	offers := m.offers(run)
	if len(*said) > mostCommands/3 && slices.ContainsFunc(offers, decisive.MatchString) {
		offers = slices.DeleteFunc(offers, func(o string) bool { return !decisive.MatchString(o) })
	}
	if len(offers) == 0 {
		return false
	}
	offer := offers[c.rng.IntN(len(offers))]
	*said = append(*said, offer)
	for end := time.Now().Add(patience); ; time.Sleep(20 * time.Millisecond) {
		code, _, errs := m.line(c, fill(offer))
		m.readable(c, offer, errs)
		if code == exit.OK || strings.Contains(errs, "Give --succeeded --output") || !slices.Contains(m.offers(run), offer) {
			return true
		}
		if time.Now().After(end) { // otherwise the run may have changed in between
			m.errorf(c, "engine explain %s offers %q, which is refused:\n%s", run, offer, errs)
			return true
		}
	}
}

// offers returns the commands that `engine explain` offers. For a run that continues only at a later time it
// returns the command that cancels the run.
func (m *matrix) offers(run string) []string {
	x := m.explain(run)
	offers := append(slices.Clone(x.Remedies), signalCommand.FindAllString(x.Text, -1)...)
	if waitsForTime.MatchString(x.Text) && x.Status != "compensating" && len(offers) == 0 {
		offers = []string{"engine cancel " + run}
	}
	return slices.DeleteFunc(offers, func(o string) bool { return strings.HasPrefix(o, "engine explain") || o == "engine serve" })
}
