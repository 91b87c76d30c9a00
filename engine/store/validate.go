package store

import (
	"fmt"
	"strings"
	"unicode/utf8"

	"github.com/saga-engine/engine/engine/machine"
)

// Sizes that every store accepts, and beyond which it refuses a row. They are
// a last line: sizes are enforced where bytes enter.
const (
	MaxRowBytes = 64 << 20 // of Transition.Data
	MaxNameLen  = 100      // characters of Names.Name, all of them ASCII
	MaxKeyBytes = 1024     // of Names.Key: it stands in a unique index
)

// Validate reports why no store may keep the transition, whatever its
// constraints say: a state outside the set, a first row that does not say what
// the run becomes, a running step without a complete-by (S10).
func (t *Transition) Validate() error {
	switch {
	case t.Run <= 0:
		return fmt.Errorf("engine: run id %d is not positive", t.Run)
	case t.Seq < 0:
		return fmt.Errorf("engine: run %d: seq %d is negative", t.Run, t.Seq)
	case t.At.IsZero():
		return fmt.Errorf("engine: run %d seq %d: time is missing", t.Run, t.Seq)
	case t.State != machine.RunInvalid && !validRunState(t.State):
		return fmt.Errorf("engine: run %d seq %d: no such run state: %v", t.Run, t.Seq, t.State)
	case t.Owner != nil && *t.Owner < 0:
		return fmt.Errorf("engine: run %d seq %d: owner %d is negative", t.Run, t.Seq, *t.Owner)
	case t.Seq == 0 && (t.Workflow <= 0 || t.State == machine.RunInvalid || t.Owner == nil || t.NextCheck.IsZero()):
		return fmt.Errorf("engine: run %d: the first row must name workflow, state, owner and next check", t.Run)
	case len(t.Data) == 0:
		return fmt.Errorf("engine: run %d seq %d: row is empty", t.Run, t.Seq)
	case len(t.Data) > MaxRowBytes:
		return fmt.Errorf("engine: run %d seq %d: row of %d bytes exceeds %d", t.Run, t.Seq, len(t.Data), MaxRowBytes)
	}
	for _, s := range t.Steps {
		if s.State < machine.StepPending || s.State > machine.StepUndoFailed {
			return fmt.Errorf("engine: run %d seq %d: step %d: no such step state: %v", t.Run, t.Seq, s.Node, s.State)
		}
		if s.State == machine.StepRunning && s.CompleteBy.IsZero() {
			return fmt.Errorf("engine: run %d seq %d: step %d is running without a complete-by", t.Run, t.Seq, s.Node)
		}
	}
	return nil
}

func validRunState(s machine.RunState) bool {
	return s >= machine.RunQueued && s <= machine.RunCompensationFailed ||
		s >= machine.RunSucceeded && s <= machine.RunCancelled
}

// Validate reports why the names cannot be kept. A run's name has a narrow
// grammar, [A-Za-z0-9][A-Za-z0-9._:/-]*, and is no RunName; a unique key is any
// text.
func (n Names) Validate() error {
	_, given := ParseRunName(n.Name)
	switch {
	case utf8.RuneCountInString(n.Name) > MaxNameLen:
		return fmt.Errorf("engine: run name of %d characters exceeds %d", utf8.RuneCountInString(n.Name), MaxNameLen)
	case len(n.Key) > MaxKeyBytes:
		return fmt.Errorf("engine: unique key of %d bytes exceeds %d", len(n.Key), MaxKeyBytes)
	case given:
		return fmt.Errorf("engine: run name %q: no run has it, and names of this form are given by engines: choose another", n.Name)
	case n.Name != "" && !validName(n.Name):
		return fmt.Errorf("engine: run name %q: it must begin with an ASCII letter or digit and hold only those and . _ : / -", n.Name)
	case n.Key != CleanText(n.Key):
		return fmt.Errorf("engine: unique key %q holds bytes that are not text", n.Key)
	case n.Key != "" && n.Workflow == "":
		return fmt.Errorf("engine: unique key %q has no workflow", n.Key)
	}
	return nil
}

// validName reports whether a text can name a run: what can stand unquoted in
// a shell, a URL and a log. Its length is checked apart.
func validName(s string) bool {
	for i, c := range []byte(s) {
		alnum := c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' || c >= '0' && c <= '9'
		if !alnum && (i == 0 || strings.IndexByte("._:/-", c) < 0) {
			return false
		}
	}
	return s != ""
}

// CleanText makes s storable as text everywhere: bytes that are not UTF-8, and
// NUL, become U+FFFD. Views and alerts use it, so that what an agent says can
// never keep a record from landing.
func CleanText(s string) string {
	if utf8.ValidString(s) && strings.IndexByte(s, 0) < 0 {
		return s
	}
	return strings.ReplaceAll(strings.ToValidUTF8(s, "\uFFFD"), "\x00", "\uFFFD")
}

// MaxDedupLen bounds Message.Dedup, in characters: it stands in a unique index.
const MaxDedupLen = 100

// Validate reports why no inbox may keep the message.
func (m Message) Validate() error {
	switch {
	case m.Run <= 0:
		return fmt.Errorf("engine: message for run id %d, which is not positive", m.Run)
	case m.Kind <= 0:
		return fmt.Errorf("engine: message for run %d: no such kind: %d", m.Run, m.Kind)
	case utf8.RuneCountInString(m.Dedup) > MaxDedupLen:
		return fmt.Errorf("engine: message for run %d: dedup of %d characters exceeds %d", m.Run, utf8.RuneCountInString(m.Dedup), MaxDedupLen)
	case m.Dedup != CleanText(m.Dedup):
		return fmt.Errorf("engine: message for run %d: dedup %q holds bytes that are not text", m.Run, m.Dedup)
	case len(m.Data) > MaxRowBytes:
		return fmt.Errorf("engine: message of %d bytes for run %d exceeds %d", len(m.Data), m.Run, MaxRowBytes)
	}
	return nil
}

// Alert returns the alert that every store keeps beside a late reply. All of
// it is text that can be stored.
func (l LateReply) Alert() Alert {
	return Alert{
		Kind: "late_reply", Step: CleanText(l.Step), Code: CleanText(l.Code),
		Message: "an answer came too late to count: " + CleanText(l.Outcome),
	}
}
