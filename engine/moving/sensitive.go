package moving

import (
	"encoding/json"
	"slices"
	"strings"

	"github.com/saga-engine/engine/dsl"
)

// The first definition of a run marks some values of the run as sensitive: these values are sealed
// and not shown. If another definition did not mark such a value, the value would be stored and
// shown in clear. So a move or restart to such a definition is refused.

const keepMark = "declare it as sensitive; or start a new run, with another secret"

// exposes compares the marks of two objects. It returns the names of the attributes that are
// sensitive in the object `was`, but not sensitive, or not completely sensitive, in the object
// `is`. It leaves out attributes that the object `is` does not have. The name "" means the whole
// value.
func exposes(was, is dsl.Value) []string {
	var names []string
	for _, pointer := range was.Sensitive() {
		covered := slices.ContainsFunc(is.Sensitive(), func(p string) bool { return p == pointer || strings.HasPrefix(pointer, p+"/") })
		if name, ok := attribute(is, pointer); ok && !covered && !slices.Contains(names, name) {
			names = append(names, name)
		}
	}
	return names
}

// attribute returns the name of the attribute to which a JSON pointer leads. The result `ok` is
// false if the value is an object without this attribute, or null.
func attribute(v dsl.Value, pointer string) (name string, ok bool) {
	if pointer == "" {
		return "", true
	}
	name, _, _ = strings.Cut(pointer[1:], "/")
	name = strings.ReplaceAll(strings.ReplaceAll(name, "~1", "/"), "~0", "~")
	var object map[string]json.RawMessage
	if json.Unmarshal(v.JSON(), &object) != nil {
		return name, true // not an object, such as a list: attribute does not look for its elements
	}
	_, ok = object[name]
	return name, ok
}

// secretVariables refuses the move or the restart if a variable is not sensitive any more.
func (c *comparison) secretVariables() {
	for _, name := range exposes(c.run.Vars.V, c.plan.Vars) {
		c.refuse("", keepMark, "variable %s is sensitive in the run, but not in the new definition", name)
	}
}

// secretResult refuses the move or the restart, and returns false, if a recorded result of a step
// is not sensitive any more. The parameter `is` is the result with the marks of the new definition.
func (c *comparison) secretResult(step string, was, is dsl.Value) bool {
	if names := exposes(was, is); len(names) > 0 {
		what := "the result of step " + step
		if names[0] != "" {
			what = "the attribute " + names[0] + " of " + what
		}
		c.refuse(step, "declare it as sensitive", "%s is sensitive in the run, but not in the new definition", what)
		return false
	}
	return true
}
