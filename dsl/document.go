package dsl

import "github.com/saga-engine/engine/dsl/internal/value"

// Document converts a JSON document to a value of type any. An example of such a document is the
// data that an agent sends with a failure. Document returns an error if `data` is not valid JSON
// or is nested too deeply.
func Document(data []byte) (Value, error) {
	v, err := value.DecodeJSON(data)
	if err != nil {
		return Value{}, err
	}
	return value.Encode(v, false)
}
