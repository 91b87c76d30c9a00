package migrate

import (
	"bytes"
	"encoding/json"
	"maps"
	"reflect"
	"slices"

	"github.com/saga-engine/engine/cmd/engine/internal/cli"
	"github.com/saga-engine/engine/cmd/engine/internal/history"
	"github.com/saga-engine/engine/cmd/engine/render"
	"github.com/saga-engine/engine/dsl"
	"github.com/saga-engine/engine/engine/moving"
)

// A variable is a variable of the run whose value the move changes. A move has no flag for values
// of variables. But the new definition may add a variable with a default, may remove a variable, or
// may have another type, to which the value is converted.
type variable struct {
	name string
	// JSON texts of the value before the move and after it, without sensitive values. nil = the
	// definition does not have the variable.
	was, is json.RawMessage
}

// variables returns the variables whose values the move changes, sorted by name. It returns nil if
// the run cannot be moved.
func variables(r *history.Run, plan moving.Plan) []variable {
	if len(plan.Refusals) > 0 {
		return nil
	}
	return changed(r.State.Run().Vars.V, plan.Vars)
}

// changed compares two objects with the values of all variables.
func changed(was, is dsl.Value) []variable {
	before, after := attributes(was.JSON()), attributes(is.JSON())
	shownBefore, shownAfter := attributes(render.Redact(was)), attributes(render.Redact(is))
	names := maps.Clone(before)
	maps.Copy(names, after)
	var out []variable
	for _, name := range slices.Sorted(maps.Keys(names)) {
		if !equal(before[name], after[name]) {
			out = append(out, variable{name: name, was: shownBefore[name], is: shownAfter[name]})
		}
	}
	return out
}

// attributes returns the attributes of a JSON object. It returns an empty map for any other text.
func attributes(object []byte) map[string]json.RawMessage {
	all := map[string]json.RawMessage{}
	if json.Unmarshal(object, &all) != nil || all == nil {
		return map[string]json.RawMessage{}
	}
	return all
}

// equal reports whether two JSON texts have the same value. The text nil is equal only to nil.
func equal(x, y json.RawMessage) bool {
	if x == nil || y == nil {
		return x == nil && y == nil
	}
	return reflect.DeepEqual(decoded(x), decoded(y))
}

func decoded(text json.RawMessage) (v any) {
	dec := json.NewDecoder(bytes.NewReader(text))
	dec.UseNumber() // a float64 would lose digits of large numbers
	if dec.Decode(&v) != nil {
		return string(text)
	}
	return v
}

// widest is the largest width of a value in the list for people.
const widest = 72

// writeVariables shows NAME: OLD -> NEW for each variable whose value the move changes.
func writeVariables(a *cli.App, all []variable) error {
	if len(all) == 0 {
		return nil
	}
	if err := a.Print("Variables that change:\n"); err != nil {
		return err
	}
	for _, v := range all {
		if err := a.Print("  %s: %s -> %s\n", v.name, valueText(v.was), valueText(v.is)); err != nil {
			return err
		}
	}
	return a.Print("\n")
}

func valueText(value json.RawMessage) string {
	if value == nil {
		return "(none)"
	}
	return render.Cut(render.Clean(string(value)), widest)
}

// variablesJSON returns the changed variables for --json. The fields `was` and `is` are missing if
// the definition does not have the variable.
func variablesJSON(all []variable) []map[string]any {
	out := []map[string]any{}
	for _, v := range all {
		m := map[string]any{"name": v.name}
		if v.was != nil {
			m["was"] = v.was
		}
		if v.is != nil {
			m["is"] = v.is
		}
		out = append(out, m)
	}
	return out
}
