package value

// LoadOf returns the size of a stored value: its bytes, and its nodes (see JSONNodes).
func LoadOf(v Value) Load {
	raw := v.JSON()
	return Load{int64(len(raw)), JSONNodes(raw)}
}

// JSONNodes counts the nodes of a JSON document: its values, and the names of its attributes.
// The count is approximate.
func JSONNodes(data []byte) int64 {
	n, inString := int64(1), false
	for i := 0; i < len(data); i++ {
		switch c := data[i]; {
		case inString && c == '\\':
			i++
		case c == '"':
			inString = !inString
		case !inString && (c == ',' || c == ':' || c == '[' || c == '{'):
			n++
		}
	}
	return n
}
