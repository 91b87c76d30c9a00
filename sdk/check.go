package sdk

import (
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/saga-engine/engine/sdk/internal/fastjson"
	"github.com/saga-engine/engine/sdk/internal/jsontree"
	"github.com/saga-engine/engine/sdk/schema"
)

// CheckObject checks that a JSON object has the given fields. It reports a required field that is
// missing, a name that is unknown, a value of a wrong type, and a value that is not in the enum of
// its field. For each object, the error names up to 12 problems. It shows no value, but it names the
// keys of maps. If a field is sensitive, it does not name the keys in this field either. A host
// calls CheckObject for each result before it uses the result (S35).
func CheckObject(fields []schema.Field, raw json.RawMessage) error {
	if fastjson.Holds(fields, raw) {
		return nil
	}
	tree, err := jsontree.Parse(raw)
	if err != nil {
		return fmt.Errorf("not a JSON object: %w", err)
	}
	return checkFields(fields, tree, "", false)
}

// mostProblems is the largest number of problems that an error names for one object.
const mostProblems = 12

// checkFields checks that `tree` is an object with the given fields. The parameter `path` is the
// name of this object in the error. The error names up to mostProblems problems, so that a person
// can correct several problems together. If `hide` is true, the object is a part of a sensitive
// value, and the error does not show the keys of maps and the unknown names in the object.
func checkFields(fields []schema.Field, tree any, path string, hide bool) error {
	object, ok := tree.(map[string]any)
	if !ok {
		return jsontree.Want(false, path, "an object", tree)
	}
	var problems []string
	known := 0
	for _, f := range fields {
		value, present := object[f.Name]
		if present {
			known++
		}
		if err := checkField(f, value, present, jsontree.Join(path, f.Name), hide || f.Sensitive); err != nil {
			problems = append(problems, err.Error())
		}
	}
	if known < len(object) {
		for _, name := range slices.Sorted(maps.Keys(object)) {
			if !slices.ContainsFunc(fields, func(f schema.Field) bool { return f.Name == name }) {
				problems = append(problems, jsontree.Unknown(path, name, hide).Error())
			}
		}
	}
	if len(problems) == 0 {
		return nil
	}
	if more := len(problems) - mostProblems; more > 0 {
		problems = append(problems[:mostProblems], fmt.Sprintf("and %d more", more))
	}
	return errors.New(strings.Join(problems, "; "))
}

func checkField(f schema.Field, value any, present bool, at string, hide bool) error {
	if value == nil && (f.Optional || present && f.Type.Kind == schema.KindAny) {
		return nil
	}
	if !present {
		return fmt.Errorf("%s: is missing", at)
	}
	if err := checkType(f.Type, value, at, hide); err != nil {
		return err
	}
	if err := checkAllowed(f, value); err != nil {
		return fmt.Errorf("%s: %w", at, err)
	}
	return nil
}

func checkAllowed(f schema.Field, value any) error {
	if len(f.Enum) == 0 {
		return nil
	}
	allowed := make([]any, 0, len(f.Enum))
	for _, raw := range f.Enum {
		tree, err := jsontree.Parse(raw)
		if err != nil {
			return fmt.Errorf("enum of the schema: %w", err)
		}
		allowed = append(allowed, tree)
	}
	return jsontree.OneOf(value, allowed, f.Enum)
}

func checkType(t schema.Type, tree any, path string, hide bool) error {
	switch t.Kind {
	case schema.KindAny:
		return nil
	case schema.KindBool:
		_, ok := tree.(bool)
		return jsontree.Want(ok, path, "a boolean", tree)
	case schema.KindNumber:
		_, ok := tree.(json.Number)
		return jsontree.Want(ok, path, "a number", tree)
	case schema.KindString:
		_, ok := tree.(string)
		return jsontree.Want(ok, path, "a string", tree)
	case schema.KindObject:
		return checkFields(t.Fields, tree, path, hide)
	case schema.KindList, schema.KindSet:
		list, ok := tree.([]any)
		if !ok {
			return jsontree.Want(false, path, "a list", tree)
		}
		for i, e := range list {
			if err := checkType(*t.Elem, e, fmt.Sprintf("%s[%d]", path, i), hide); err != nil {
				return err
			}
		}
		return nil
	case schema.KindMap:
		object, ok := tree.(map[string]any)
		if !ok {
			return jsontree.Want(false, path, "a map", tree)
		}
		for _, key := range slices.Sorted(maps.Keys(object)) {
			if err := checkType(*t.Elem, object[key], jsontree.Key(path, key, hide), hide); err != nil {
				return err
			}
		}
		return nil
	}
	return fmt.Errorf("%s: the schema's type %q is not known", path, t.Kind)
}
