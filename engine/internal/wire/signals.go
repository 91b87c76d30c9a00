package wire

import (
	"github.com/saga-engine/engine/engine/internal/model"
)

// putSignals writes a list of signals, and getSignals reads it. Snapshots have such a list, and so
// has the start of a group's run.
func putSignals(e *encoder, list []model.Signal) {
	e.uint(uint64(len(list)))
	for k := range list {
		x := &list[k]
		e.int(int64(x.Number))
		e.string(x.Name)
		e.value(x.Payload)
		e.string(x.Fail)
		e.string(x.Reason)
		e.string(x.By)
	}
}

func getSignals(d *decoder) []model.Signal {
	var list []model.Signal
	for range d.count() {
		list = append(list, model.Signal{Number: int32(d.index()), Name: d.string(), Payload: d.value(),
			Fail: d.string(), Reason: d.string(), By: d.string()})
	}
	return list
}

// putHandover writes which signals belong to the run of a group, and getHandover reads it.
func putHandover(e *encoder, h model.Handover) {
	e.int(int64(h.Gen))
	e.bool(h.Absent)
	e.uint(uint64(len(h.Signals)))
	for _, number := range h.Signals {
		e.int(int64(number))
	}
}

func getHandover(d *decoder) model.Handover {
	h := model.Handover{Gen: int32(d.index()), Absent: d.bool()}
	for range d.count() {
		h.Signals = append(h.Signals, int32(d.index()))
	}
	return h
}
