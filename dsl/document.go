package dsl

import "github.com/saga-engine/engine/dsl/internal/value"

// Document returns the Value of a JSON document, such as the data that an agent sends with a
// failure. It returns an error if `data` is not valid JSON or is nested too deeply.
func Document(data []byte) (Value, error) {
	v, err := value.DecodeJSON(data)
	if err != nil {
		return Value{}, err
	}
	return value.Encode(v, false)
}
