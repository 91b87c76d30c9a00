package schema

import (
	"errors"
	"fmt"
	"maps"
	"regexp"
	"slices"

	"github.com/saga-engine/engine/sdk/internal/names"
)

// Words holds the rules for the texts in a field that has a Pattern or Codes. A nil *Words
// accepts every text.
type Words struct {
	pattern *regexp.Regexp // nil = any text
	text    string         // text of the pattern, for errors
	codes   bool           // the texts must be valid error codes
	hidden  bool           // errors must not show the texts, because they are sensitive
}

// Hide returns the same rules, but their errors do not show the text. It is for a text that is
// sensitive although its field is not, such as a sensitive variable in a workflow. Hide returns nil
// if w is nil.
func (w *Words) Hide() *Words {
	if w == nil || w.hidden {
		return w
	}
	out := *w
	out.hidden = true
	return &out
}

// wrong returns an error that says what is wrong with the text. It shows the text only if the text
// is not sensitive.
func (w *Words) wrong(text, what string) error {
	if w.hidden {
		return fmt.Errorf("the text %s; it is sensitive, so it is not shown", what)
	}
	return fmt.Errorf("%q %s", text, what)
}

// Words returns the rules for the texts in the field; nil if the field accepts every text. If the
// field is sensitive, the errors of the rules do not show the texts.
// It returns an error if the pattern is wrong, or if the field's type cannot have a pattern or
// codes.
func (f Field) Words() (*Words, error) {
	if f.Pattern == "" && !f.Codes {
		return nil, nil
	}
	t := f.Type
	if (t.Kind == KindList || t.Kind == KindSet || t.Kind == KindMap) && t.Elem != nil {
		t = *t.Elem
	}
	if t.Kind != KindString && (f.Codes || f.Type.Kind != KindMap) {
		return nil, errors.New("pattern, codes: only strings, lists of strings and maps can have them")
	}
	w := &Words{text: f.Pattern, codes: f.Codes, hidden: f.Sensitive}
	if f.Pattern != "" {
		var err error
		if w.pattern, err = regexp.Compile(`\A(?:` + f.Pattern + `)\z`); err != nil {
			return nil, fmt.Errorf("pattern: %w", err)
		}
	}
	return w, nil
}

// CheckPattern returns an error if a text in the field does not match the field's pattern. The
// text is a key of a map, an element of a list, or the string itself.
func (w *Words) CheckPattern(text string) error {
	if w == nil || w.pattern == nil || w.pattern.MatchString(text) {
		return nil
	}
	return w.wrong(text, "does not match "+w.text)
}

// CheckCode returns an error if the field accepts only error codes, and `text` is not an error code
// that an agent may use. The text is a value of a map, an element of a list, or the string
// itself.
func (w *Words) CheckCode(text string) error {
	if w == nil || !w.codes || names.Valid(text) && !names.Reserved(text) {
		return nil
	}
	return w.wrong(text, "cannot be an error code: want snake_case, and none of the engine's own")
}

// Check checks the texts in a value that has the field's type. It stops at the first wrong text,
// and returns the errors of this text.
func (w *Words) Check(tree any) error {
	if w == nil {
		return nil
	}
	switch x := tree.(type) {
	case string:
		return errors.Join(w.CheckPattern(x), w.CheckCode(x))
	case []any:
		for _, e := range x {
			if err := w.Check(e); err != nil {
				return err
			}
		}
	case map[string]any:
		for _, key := range slices.Sorted(maps.Keys(x)) {
			if err := w.CheckPattern(key); err != nil {
				return err
			}
			if code, ok := x[key].(string); ok {
				if err := w.CheckCode(code); err != nil {
					return err
				}
			}
		}
	}
	return nil
}
