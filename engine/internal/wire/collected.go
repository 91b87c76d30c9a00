package wire

import "github.com/saga-engine/engine/engine/internal/model"

// collected writes the end of a list: its length, and those values at its end that the record
// added. A reader has the other values already. So the journal of a loop grows by one value in
// each iteration, and not by the whole list.
func (e *encoder) collected(c *model.Collected) {
	e.int(int64(c.Len()))
	if c == nil {
		return
	}
	e.int(int64(c.Fresh))
	for _, v := range c.Tail(c.Fresh) {
		e.value(v)
	}
}

// collected reads the end of a list that the method collected of an encoder has written.
func (d *decoder) collected() *model.Collected {
	count := d.index()
	if count == 0 {
		return nil
	}
	fresh := d.index()
	if count > model.MaxCollected+1 || fresh > count {
		d.fail()
		return nil
	}
	var c *model.Collected
	known := int32(count - fresh)
	for k := range fresh {
		v := d.value()
		if d.err != nil {
			return nil
		}
		c = c.Append(v, 0)
		c.Count, c.Fresh = known+int32(k)+1, int32(k)+1
	}
	return c
}
