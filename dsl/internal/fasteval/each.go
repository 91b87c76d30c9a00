package fasteval

import "github.com/saga-engine/engine/dsl/internal/value"

// Refers reports whether the expression is a reference and nothing else; false for nil.
func (d *Expr) Refers() bool { return d != nil && d.kind == directReference }

// Each evaluates a for_each expression and returns the keys and values of the
// instances; ok is false if it gives up. The values share the bytes of one document.
func (d *Expr) Each(x *Context) (keys []string, values []value.Value, ok bool) {
	c := copier{}
	if !d.write(x, &c, false) || len(c.marks) > 0 || c.out[0] != '{' {
		return nil, nil, false
	}
	c.attributes(c.out)
	keys, values = value.Split(c.members)
	return keys, values, true
}
