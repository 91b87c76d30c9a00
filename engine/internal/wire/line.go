package wire

import "github.com/saga-engine/engine/engine/internal/model"

// line writes how a run stands in line.
func (e *encoder) line(l model.Line) {
	e.int(int64(l.Lift))
	e.int(int64(l.Limit))
	e.string(l.Key)
}

// line reads how a run stands in line.
func (d *decoder) line() model.Line {
	lift, limit := d.int(), d.int()
	l := model.Line{Lift: int32(lift), Limit: int32(limit), Key: d.string()}
	if int64(l.Lift) != lift || int64(l.Limit) != limit {
		d.fail()
	}
	return l
}
