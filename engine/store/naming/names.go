package naming

import (
	"fmt"
	"strings"
	"unicode/utf8"

	"github.com/saga-engine/engine/engine/machine/status"
)

// The largest sizes that a store accepts. Every store refuses larger values.
const (
	MaxNameLen  = 100  // largest length of Names.Name, in characters, which are ASCII
	MaxKeyBytes = 1024 // largest length of Names.Key, in bytes; the key is part of a unique index
	MaxDedupLen = 100  // largest length of Message.Dedup, in characters; Dedup is part of a unique index
)

// Names are the public names with which a run is submitted.
type Names struct {
	Name     string   // public name, at most 100 characters; "" = the name that RunName returns
	Workflow string   // name of the workflow; another workflow may use the same Key
	Key      string   // unique key; "" = none
	KeyScope KeyScope // how long the run holds Key; the zero value = ScopeGoal, until the goal is reset
	// Parent is the internal id of the run that starts this run; 0 = the run is no child run. A
	// child run must have a Name.
	Parent status.RunID
	// From is the internal id of the ended run whose results this run takes over; 0 = none. The
	// store accepts the run only if the ended run has no heir (Heirs). If it has an heir, the
	// outcome is a *HeirError. If it does not exist or has not ended, the outcome is ErrNoOrigin.
	From status.RunID
	// Trigger says what has started the run. It must be ByHand if both Name and Key are "": then
	// the store keeps no row of names for the run (Kept), and so no Trigger.
	Trigger Trigger
}

// notification is the text that the name of each notification contains. The names of the workflows
// of notifications contain it, too.
const notification = ".notify"

// Public returns the public name of the run that is submitted with these names: n.Name or, if
// that is "", the name that RunName computes from the id of the run.
func (n Names) Public(run status.RunID) string {
	if n.Name == "" {
		return RunName(run)
	}
	return n.Name
}

// Kept reports whether a store must keep the names. It returns false for most runs: they
// have no key, and their name can be computed from their id (RunName).
func (n Names) Kept() bool { return n.Name != "" || n.Key != "" }

// Validate returns an error if a store must refuse the names. A run's name must match
// [A-Za-z0-9][A-Za-z0-9._:/-]* and must not have the form of the names that RunName returns. A
// unique key may be any text without control characters, of at most MaxKeyBytes bytes.
func (n Names) Validate() error {
	_, given := ParseRunName(n.Name)
	if err := checkKey(n.Key); err != nil {
		return err
	}
	if err := n.KeyScope.Validate(); err != nil {
		return err
	}
	switch {
	case utf8.RuneCountInString(n.Name) > MaxNameLen:
		return fmt.Errorf("engine: run name of %d characters exceeds %d", utf8.RuneCountInString(n.Name), MaxNameLen)
	case given:
		return fmt.Errorf("engine: run name %q: no run has it, and names of this form are given by engines: choose another", n.Name)
	case strings.Contains(n.Name, notification) && !strings.Contains(n.Workflow, notification):
		return fmt.Errorf("engine: run name %q: names with %s are given by engines, to the notifications of a run: choose another", n.Name, notification)
	case n.Name != "" && !validName(n.Name):
		return fmt.Errorf("engine: run name %q: it must begin with an ASCII letter or digit and hold only those and . _ : / -", n.Name)
	case n.Parent != 0 && n.Name == "":
		return fmt.Errorf("engine: a child run of run %s has no name", RunName(n.Parent))
	case n.From != 0 && n.Parent != 0:
		return fmt.Errorf("engine: a child run cannot take over the results of run %s", RunName(n.From))
	case n.Trigger != ByHand && !n.Kept():
		return fmt.Errorf("engine: a run that was started by %s has no name", n.Trigger)
	case n.Key != "" && n.Workflow == "":
		return fmt.Errorf("engine: unique key %q has no workflow", n.Key)
	}
	return nil
}

// validName reports whether a text has the form of a run's name. A name of this form needs
// no quotes in a shell, a URL or a log. The caller checks the length.
func validName(s string) bool {
	for i, c := range []byte(s) {
		alnum := c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' || c >= '0' && c <= '9'
		if !alnum && (i == 0 || strings.IndexByte("._:/-", c) < 0) {
			return false
		}
	}
	return s != ""
}

// CleanText replaces NUL and bytes that are not UTF-8 by U+FFFD, so that every store can keep `s`
// as text. Without this, a text of an agent could make a commit fail, because such a text may be
// part of an alert or of the name of an instance.
func CleanText(s string) string {
	if utf8.ValidString(s) && strings.IndexByte(s, 0) < 0 {
		return s
	}
	return strings.ReplaceAll(strings.ToValidUTF8(s, "\uFFFD"), "\x00", "\uFFFD")
}
