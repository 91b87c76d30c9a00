package postgres

import (
	"cmp"
	"slices"
	"strconv"
	"strings"

	"github.com/saga-engine/engine/engine"
	"github.com/saga-engine/engine/engine/machine"
)

// A batch is what one commit sends: transitions as columns.
type batch struct {
	items   []engine.Transition
	creates bool
	moves   bool // the row of a run that is there changes
	names   bool // some of what begins does so under names
	keys    bool
	side    bool // instances or alerts; then the shape has names and keys too
	consume bool // messages too; then the shape has everything

	run, seq, at, workflow, state, owner, check, steps, data array
	nameRun, name, nameKey                                   array
	keyFlow, key, keyRun                                     array
	nodeRun, node, nodeStep, nodeName                        array
	alertRun, alertN, kind, alertStep, code, message         array
	consumedRun, consumed                                    array
	scratch                                                  []byte
	order                                                    []*engine.Transition // those with names
	sent                                                     []any                // arguments
}

// fill encodes items; a batch is filled again and again, and its arrays are
// valid until then.
func (b *batch) fill(items []engine.Transition) {
	b.items, b.creates, b.moves, b.names, b.keys, b.side, b.consume = items, false, false, false, false, false, false
	b.order = b.order[:0]
	for i := range items {
		t := &items[i]
		b.creates = b.creates || t.Seq == 0
		b.moves = b.moves || t.Seq > 0 && (t.State != 0 || t.Owner != nil || !t.NextCheck.IsZero())
		b.side = b.side || len(t.NewNodes) > 0 || len(t.Alerts) > 0
		b.consume = b.consume || len(t.Consumed) > 0
		if t.Names != nil {
			b.names, b.keys = true, b.keys || t.Names.Key != ""
			b.order = append(b.order, t)
		}
	}
	b.reset()
	for i := range items {
		b.add(&items[i])
	}
	b.addNames()
	clear(b.order)
}

// addNames encodes names and keys, each in the order in which all engines lock
// them.
func (b *batch) addNames() {
	slices.SortFunc(b.order, byName)
	for _, t := range b.order {
		b.nameRun.int8(int64(t.Run))
		b.name.text(publicName(t))
		if t.Names.Key != "" {
			b.nameKey.text(t.Names.Key)
		} else {
			b.nameKey.null()
		}
	}
	if !b.keys {
		return
	}
	slices.SortFunc(b.order, byKey)
	for _, t := range b.order {
		if t.Names.Key != "" {
			b.keyFlow.text(t.Names.Workflow)
			b.key.text(t.Names.Key)
			b.keyRun.int8(int64(t.Run))
		}
	}
}

// publicName is the name under which a transition with names submits its run.
func publicName(t *engine.Transition) string {
	if t.Names.Name == "" {
		return strconv.FormatInt(int64(t.Run), 10)
	}
	return t.Names.Name
}

func byName(a, b *engine.Transition) int {
	return cmp.Or(strings.Compare(publicName(a), publicName(b)), cmp.Compare(a.Run, b.Run))
}

func byKey(a, b *engine.Transition) int {
	return cmp.Or(strings.Compare(a.Names.Workflow, b.Names.Workflow), strings.Compare(a.Names.Key, b.Names.Key), cmp.Compare(a.Run, b.Run))
}

// reset begins the arrays that the shape at hand sends.
func (b *batch) reset() {
	for _, c := range []struct {
		a   *array
		oid uint32
	}{
		{&b.run, oidInt8}, {&b.seq, oidInt4}, {&b.at, oidTimestamptz}, {&b.workflow, oidInt4}, {&b.state, oidInt2},
		{&b.owner, oidInt4}, {&b.check, oidTimestamptz}, {&b.steps, oidBytea}, {&b.data, oidBytea},
		{&b.nameRun, oidInt8}, {&b.name, oidText}, {&b.nameKey, oidText},
		{&b.keyFlow, oidText}, {&b.key, oidText}, {&b.keyRun, oidInt8},
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
		return journalSideIfNone
	case b.side:
		return journalSide
	case b.names && ifNone:
		return journalKeyedIfNone
	case b.keys:
		return journalKeyed
	case b.names && !b.moves:
		return journalBegin
	case b.names:
		return journalNamed
	case b.creates && ifNone:
		return journalCreateIfNone
	case b.creates:
		return journalCreate
	case ifNone:
		return journalAppendIfNone
	case !b.moves:
		return journalPlain
	}
	return journalAppend
}

// args are the arguments of the shape, valid until the next call.
func (b *batch) args(id engine.EngineID, writer int, token int64, ifNone bool) []any {
	args := append(b.sent[:0], int64(id), int64(writer), token,
		b.run.bytes(), b.seq.bytes(), b.at.bytes(), b.workflow.bytes(), b.state.bytes(), b.owner.bytes(), b.check.bytes(), b.steps.bytes(), b.data.bytes())
	side := b.side || b.consume
	if b.names || side {
		args = append(args, b.nameRun.bytes(), b.name.bytes(), b.nameKey.bytes())
	}
	if b.keys || side || b.names && ifNone {
		args = append(args, b.keyFlow.bytes(), b.key.bytes(), b.keyRun.bytes())
	}
	if side {
		args = append(args, b.nodeRun.bytes(), b.node.bytes(), b.nodeStep.bytes(), b.nodeName.bytes(),
			b.alertRun.bytes(), b.alertN.bytes(), b.kind.bytes(), b.alertStep.bytes(), b.code.bytes(), b.message.bytes())
	}
	if b.consume {
		args = append(args, b.consumedRun.bytes(), b.consumed.bytes())
	}
	b.sent = args
	return args
}
