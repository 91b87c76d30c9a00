package schema

import (
	"encoding/json"
	"fmt"
	"sort"
)

// MarshalJSON returns the JSON form of the type.
func (t Type) MarshalJSON() ([]byte, error) {
	switch t.Kind {
	case KindAny:
		return []byte(`"dynamic"`), nil
	case KindBool, KindNumber, KindString:
		return json.Marshal(string(t.Kind))
	case KindList, KindSet, KindMap:
		if t.Elem == nil {
			return nil, fmt.Errorf("sdk: %s type without element type", t.Kind)
		}
		return json.Marshal([]any{string(t.Kind), t.Elem})
	case KindObject:
		attrs := map[string]Type{}
		var optional []string
		for _, f := range t.Fields {
			attrs[f.Name] = f.Type
			if f.Optional {
				optional = append(optional, f.Name)
			}
		}
		if len(optional) == 0 {
			return json.Marshal([]any{"object", attrs})
		}
		sort.Strings(optional)
		return json.Marshal([]any{"object", attrs, optional})
	}
	return nil, fmt.Errorf("sdk: invalid type kind %q", t.Kind)
}

// UnmarshalJSON sets t to the type whose JSON form is data.
func (t *Type) UnmarshalJSON(data []byte) error {
	var name string
	if json.Unmarshal(data, &name) == nil {
		switch name {
		case "dynamic":
			*t = Type{Kind: KindAny}
		case "bool", "number", "string":
			*t = Type{Kind: Kind(name)}
		default:
			return fmt.Errorf("sdk: unknown type %q", name)
		}
		return nil
	}
	var parts []json.RawMessage
	if err := json.Unmarshal(data, &parts); err != nil {
		return fmt.Errorf("sdk: type expression: %w", err)
	}
	if len(parts) < 2 || json.Unmarshal(parts[0], &name) != nil {
		return fmt.Errorf("sdk: malformed type expression %s", data)
	}
	switch Kind(name) {
	case KindList, KindSet, KindMap:
		var elem Type
		if err := json.Unmarshal(parts[1], &elem); err != nil {
			return err
		}
		*t = Type{Kind: Kind(name), Elem: &elem}
		return nil
	case KindObject:
		return t.unmarshalObject(parts)
	}
	return fmt.Errorf("sdk: unknown type constructor %q", name)
}

func (t *Type) unmarshalObject(parts []json.RawMessage) error {
	var attrs map[string]Type
	if err := json.Unmarshal(parts[1], &attrs); err != nil {
		return err
	}
	optional := map[string]bool{}
	if len(parts) > 2 {
		var names []string
		if err := json.Unmarshal(parts[2], &names); err != nil {
			return fmt.Errorf("sdk: optional attributes: %w", err)
		}
		for _, n := range names {
			optional[n] = true
		}
	}
	*t = Type{Kind: KindObject}
	for n, at := range attrs {
		t.Fields = append(t.Fields, Field{Name: n, Type: at, Optional: optional[n]})
	}
	sort.Slice(t.Fields, func(i, j int) bool { return t.Fields[i].Name < t.Fields[j].Name })
	return nil
}
