package fasteval

import "github.com/saga-engine/engine/dsl/internal/value"

// Refers reports whether d is a single reference. It returns false if d is nil.
func (d *Expr) Refers() bool { return d != nil && d.kind == kindReference }

// Each evaluates a for_each expression and returns the keys and values of the instances. The values
// share the bytes of one document. The result `ok` is false if the general evaluator must evaluate
// d.
func (d *Expr) Each(x *Context) (keys []string, values []value.Value, ok bool) {
	c := canonicalWriter{}
	if !d.write(x, &c, false) || len(c.marks) > 0 || c.out[0] != '{' {
		return nil, nil, false
	}
	c.attributes(c.out)
	keys, values = value.Split(c.members)
	return keys, values, true
}
