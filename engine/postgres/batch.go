package postgres

import (
	"github.com/saga-engine/engine/engine"
	"github.com/saga-engine/engine/engine/machine"
)

// A batch is what one commit sends: transitions as columns.
type batch struct {
	items   []engine.Transition
	creates bool
	side    bool
	consume bool // messages too; then the shape has everything

	run, seq, at, workflow, state, owner, check, steps, data array
	nodeRun, node, nodeStep, nodeName                        array
	alertRun, alertN, kind, alertStep, code, message         array
	consumedRun, consumed                                    array
	scratch                                                  []byte
}

// fill encodes items; a batch is filled again and again, and its arrays are
// valid until then.
func (b *batch) fill(items []engine.Transition) {
	b.items, b.creates, b.side, b.consume = items, false, false, false
	b.reset()
	for i := range items {
		t := &items[i]
		b.creates = b.creates || t.Seq == 0
		b.side = b.side || len(t.NewNodes) > 0 || len(t.Alerts) > 0
		b.consume = b.consume || len(t.Consumed) > 0
		b.add(t)
	}
}

func (b *batch) reset() {
	for _, c := range []struct {
		a   *array
		oid uint32
	}{
		{&b.run, oidInt8}, {&b.seq, oidInt4}, {&b.at, oidTimestamptz}, {&b.workflow, oidInt4}, {&b.state, oidInt2},
		{&b.owner, oidInt4}, {&b.check, oidTimestamptz}, {&b.steps, oidBytea}, {&b.data, oidBytea},
		{&b.nodeRun, oidInt8}, {&b.node, oidInt4}, {&b.nodeStep, oidInt4}, {&b.nodeName, oidText},
		{&b.alertRun, oidInt8}, {&b.alertN, oidInt4}, {&b.kind, oidText}, {&b.alertStep, oidText}, {&b.code, oidText}, {&b.message, oidText},
		{&b.consumedRun, oidInt8}, {&b.consumed, oidInt8},
	} {
		c.a.reset(c.oid)
	}
}

func (b *batch) add(t *engine.Transition) {
	b.run.int8(int64(t.Run))
	b.seq.int4(t.Seq)
	b.at.time(t.At)
	if t.Seq == 0 {
		b.workflow.int4(int32(t.Workflow))
	} else {
		b.workflow.null()
	}
	if t.State != machine.RunInvalid {
		b.state.int2(int16(t.State))
	} else {
		b.state.null()
	}
	if t.Owner != nil {
		b.owner.int4(int32(*t.Owner))
	} else {
		b.owner.null()
	}
	if !t.NextCheck.IsZero() {
		b.check.time(t.NextCheck)
	} else {
		b.check.null()
	}
	if len(t.Steps) > 0 {
		b.scratch = engine.AppendStepRows(b.scratch[:0], t.Steps)
		b.steps.blob(b.scratch)
	} else {
		b.steps.null()
	}
	b.data.blob(t.Data)
	for _, n := range t.NewNodes {
		b.nodeRun.int8(int64(t.Run))
		b.node.int4(n.Node)
		b.nodeStep.int4(n.Step)
		b.nodeName.text(engine.CleanText(n.Name))
	}
	for i, a := range t.Alerts {
		b.alertRun.int8(int64(t.Run))
		b.alertN.int4(int32(i))
		b.kind.text(engine.CleanText(a.Kind))
		b.alertStep.text(engine.CleanText(a.Step))
		b.code.text(engine.CleanText(a.Code))
		b.message.text(engine.CleanText(a.Message))
	}
	for _, id := range t.Consumed {
		b.consumedRun.int8(int64(t.Run))
		b.consumed.int8(int64(id))
	}
}

// shape picks the statement for what the batch holds.
func (b *batch) shape(ifNone bool) string {
	switch {
	case b.consume && ifNone:
		return journalConsumeIfNone
	case b.consume:
		return journalConsume
	case b.side && ifNone:
		return journalCreateSideIfNone
	case b.side:
		return journalCreateSide
	case b.creates && ifNone:
		return journalCreateIfNone
	case b.creates:
		return journalCreate
	case ifNone:
		return journalAppendIfNone
	}
	return journalAppend
}

// args are the arguments of the shape.
func (b *batch) args(id engine.EngineID, writer int, token int64) []any {
	args := []any{
		int64(id), int64(writer), token,
		b.run.bytes(), b.seq.bytes(), b.at.bytes(), b.workflow.bytes(), b.state.bytes(), b.owner.bytes(), b.check.bytes(), b.steps.bytes(), b.data.bytes(),
	}
	if b.side || b.consume {
		args = append(args, b.nodeRun.bytes(), b.node.bytes(), b.nodeStep.bytes(), b.nodeName.bytes(),
			b.alertRun.bytes(), b.alertN.bytes(), b.kind.bytes(), b.alertStep.bytes(), b.code.bytes(), b.message.bytes())
	}
	if b.consume {
		args = append(args, b.consumedRun.bytes(), b.consumed.bytes())
	}
	return args
}
