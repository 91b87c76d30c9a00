package wire

import "github.com/saga-engine/engine/engine/internal/model"

func (e *encoder) moves(moves []model.Move) {
	e.uint(uint64(len(moves)))
	for _, m := range moves {
		e.int(int64(m.Workflow))
		e.uint(uint64(len(m.Places)))
		for _, p := range m.Places {
			e.int(int64(p))
		}
	}
}

func (d *decoder) moves() []model.Move {
	var moves []model.Move
	for range d.count() {
		m := model.Move{Workflow: d.int32()}
		for range d.count() {
			m.Places = append(m.Places, d.int32())
		}
		moves = append(moves, m)
	}
	return moves
}

// int32 reads a number that fits into 32 bits.
func (d *decoder) int32() int32 {
	v := d.int()
	if int64(int32(v)) != v {
		d.fail()
		return 0
	}
	return int32(v)
}
