package dsl

import "github.com/saga-engine/engine/dsl/internal/value"

// Document returns a JSON document as a value of type any, such as the data that an agent
// sends with a failure. The error says why the document cannot be read.
func Document(data []byte) (Value, error) {
	v, err := value.DecodeJSON(data)
	if err != nil {
		return Value{}, err
	}
	return value.Encode(v, false)
}
