package storetest

import (
	"errors"

	"github.com/saga-engine/engine/engine/store"
	"github.com/saga-engine/engine/engine/store/admission"
	"github.com/saga-engine/engine/engine/store/naming"
)

var admitRules = []rule{
	{name: "admit/a check that cannot be passed stores nothing", why: "a store runs the checks of a submission, or refuses it: it never leaves a check out (S92)", run: func(w *world) {
		a := w.join(w.Store, 1)
		c, after := w.create(a), w.create(a)
		c.Names = &naming.Names{Name: "checked", Workflow: flowName, Key: "k"}
		c.Checks = []admission.Check{{Name: "never", SQL: "SELECT false FROM engine.setting", Message: "Never."}}
		after.Names = &naming.Names{Name: "after", Workflow: flowName, Key: "k2"}
		out, err := a.writers[0].Commit(w.ctx, []store.Transition{c, after})
		if err != nil {
			w.Fatalf("commit: %v", err)
		}
		var e *admission.Error
		if !errors.As(out[0].Err, &e) || e.Name != "never" || out[0].Landed {
			w.Errorf("outcome = %+v, want it refused by the check", out[0])
		}
		if !out[1].Landed {
			w.Errorf("the other submission of the batch = %+v, want it stored", out[1])
		}
		if _, err := w.Store.Find(w.ctx, "checked"); !errors.Is(err, store.ErrNotFound) {
			w.Errorf("refused run: err = %v, want ErrNotFound", err)
		}
		again := w.create(a)
		if s := w.submit(a.writers[0], again, naming.Names{Name: "checked", Workflow: flowName, Key: "k"}); s.Exists || s.Run != again.Run {
			w.Errorf("submitted = %+v, want the name and the key of the refused run free", s)
		}
	}},
	{name: "admit/only a submission has checks", why: "a check decides whether a run is accepted", run: func(w *world) {
		a := w.join(w.Store, 1)
		c := w.create(a)
		w.land(a.writers[0], c)
		t := end(c.Run, 1, 0)
		t.Checks = []admission.Check{{Name: "late", SQL: "SELECT true FROM engine.setting"}}
		out, err := a.writers[0].Commit(w.ctx, []store.Transition{t})
		if err != nil || out[0].Err == nil {
			w.Errorf("outcome = %+v, err = %v, want the row refused", out, err)
		}
	}},
}
