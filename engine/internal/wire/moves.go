package wire

import "github.com/saga-engine/engine/engine/internal/model"

func putMoves(e *encoder, moves []model.Move) {
	e.uint(uint64(len(moves)))
	for _, m := range moves {
		e.int(int64(m.Workflow))
		e.uint(uint64(len(m.StepOf)))
		for _, p := range m.StepOf {
			e.int(int64(p))
		}
	}
}

func getMoves(d *decoder) []model.Move {
	var moves []model.Move
	for range d.count() {
		m := model.Move{Workflow: getInt32(d)}
		for range d.count() {
			m.StepOf = append(m.StepOf, getInt32(d))
		}
		moves = append(moves, m)
	}
	return moves
}

// getInt32 reads a number that fits into 32 bits.
func getInt32(d *decoder) int32 {
	v := d.int()
	if int64(int32(v)) != v {
		d.fail()
		return 0
	}
	return int32(v)
}
