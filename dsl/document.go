package dsl

// Document returns a JSON document as a value of type any: what an agent says without a
// schema. An error says what is wrong with it.
func Document(data []byte) (Value, error) {
	v, err := decodeJSON(data)
	if err != nil {
		return Value{}, err
	}
	return encodeValue(v, false)
}
