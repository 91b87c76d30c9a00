package wire

import (
	"github.com/saga-engine/engine/engine/internal/model"
	"github.com/saga-engine/engine/engine/machine"
	"github.com/saga-engine/engine/engine/machine/status"
)

// putFrom and getFrom code the field From of the start of a run.
func putFrom(e *encoder, ev *machine.Started) {
	e.uint(uint64(ev.From.Run))
	e.string(ev.From.Step)
	e.string(ev.From.Reason)
	e.bool(ev.From.Again)
}

func getFrom(d *decoder, ev *machine.Started) {
	ev.From.Run, ev.From.Step, ev.From.Reason, ev.From.Again = status.RunID(d.uint()), d.string(), d.string(), d.bool()
	if ev.From.Run == 0 {
		d.fail()
	}
}

func putAncestors(e *encoder, all []model.Ancestor) {
	e.uint(uint64(len(all)))
	for i := range all {
		a := &all[i]
		e.uint(uint64(a.Run))
		for _, text := range [...]string{a.Name, a.Key, a.Trigger, a.From, a.Reason} {
			e.string(text)
		}
		e.instant(a.Started)
		e.uint(uint64(len(a.Steps)))
		for _, s := range a.Steps {
			e.int(int64(s.Step))
			e.string(s.KeyName)
		}
	}
}

func getAncestors(d *decoder) []model.Ancestor {
	var all []model.Ancestor
	for range d.count() {
		a := model.Ancestor{Run: status.RunID(d.uint())}
		for _, text := range [...]*string{&a.Name, &a.Key, &a.Trigger, &a.From, &a.Reason} {
			*text = d.string()
		}
		a.Started = d.instant()
		for range d.count() {
			a.Steps = append(a.Steps, model.Legacy{Step: getInt32(d), KeyName: d.string()})
		}
		all = append(all, a)
	}
	return all
}
