package wire

import (
	"slices"

	"github.com/saga-engine/engine/engine/internal/model"
)

// putSignals writes a list of signals, and getSignals reads it. Snapshots have such a list, and so
// has the start of a group's run. The parameter `ids` says whether the ids of the signals follow.
// They were added later, so older rows and snapshots have none.
func putSignals(e *encoder, list []model.Signal, ids bool) {
	e.uint(uint64(len(list)))
	for k := range list {
		x := &list[k]
		e.int(int64(x.Number))
		e.string(x.Name)
		e.value(x.Payload)
		e.string(x.Fail)
		e.string(x.Reason)
		e.string(x.By)
		if ids {
			e.string(x.ID)
		}
	}
}

// haveIDs reports whether one of the signals has an id.
func haveIDs(list []model.Signal) bool {
	return slices.ContainsFunc(list, func(x model.Signal) bool { return x.ID != "" })
}

func getSignals(d *decoder, ids bool) []model.Signal {
	var list []model.Signal
	for range d.count() {
		x := model.Signal{Number: int32(d.index()), Name: d.string(), Payload: d.value(), Fail: d.string(), Reason: d.string(), By: d.string()}
		if ids {
			x.ID = d.string()
		}
		list = append(list, x)
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
