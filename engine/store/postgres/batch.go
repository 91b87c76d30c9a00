package postgres

import (
	"cmp"
	"slices"
	"strings"

	"github.com/saga-engine/engine/engine/machine/status"
	"github.com/saga-engine/engine/engine/store"
	"github.com/saga-engine/engine/engine/store/naming"
	"github.com/saga-engine/engine/engine/store/storekit"
)

// A batch holds the transitions of one commit, encoded as arrays. Each array is one
// parameter of the commit statement.
type batch struct {
	items   []store.Transition
	creates bool
	moves   bool // some transition changes the row of an existing run
	names   bool // some transition submits a run with a name or a key
	keys    bool
	// Some transition adds instances, alerts, notices or replies, or moves its run to another
	// definition. Then the commit statement also has the parts that insert names and keys.
	side    bool
	heard   bool // some transition has the field Heard set
	consume bool // some transition consumes messages; then the statement has all parts

	run, seq, at, owner, state, steps, data              array
	newRun, newAt, newFlow, newState, newOwner, newCheck array // columns for the rows of new runs
	// Columns for the changed rows of existing runs.
	oldRun, oldAt, oldSeq, oldState, oldOwner, oldCheck array
	// One more column for the rows of existing runs. A statement uses it only if `heard` or
	// `consume` is true.
	oldHeard                                         array
	nameRun, name, nameKey, nameOrigin               array
	keyFlow, key, keyRun, keyScope                   array
	nodeRun, node, nodeStep, nodeName                array
	alertRun, alertN, kind, alertStep, code, message array
	consumedRun, consumed                            array
	scratch                                          []byte
	// transitions of new runs with a name or a key
	order []*store.Transition
	sent  []any // arguments of the statement
}

// fill encodes transitions into the arrays of the batch. It can be called again and again.
// Each call overwrites the arrays of the call before.
func (b *batch) fill(items []store.Transition) {
	b.items, b.creates, b.moves, b.names, b.keys, b.side, b.heard, b.consume = items, false, false, false, false, false, false, false
	b.order = b.order[:0]
	for i := range items {
		t := &items[i]
		b.creates = b.creates || t.Seq == 0
		b.moves = b.moves || changesRun(t)
		b.side = b.side || len(t.NewNodes) > 0 || len(t.Alerts) > 0 || len(t.Announce) > 0 || t.Post != nil || t.Moved != 0
		b.heard = b.heard || t.Heard != nil
		b.consume = b.consume || len(t.Consumed) > 0
		if t.Names != nil && t.Names.Kept() {
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

// addNames encodes the names and keys of new runs in a fixed order. All engines lock names
// and keys in this order, so that they do not deadlock.
func (b *batch) addNames() {
	slices.SortFunc(b.order, byName)
	for _, t := range b.order {
		b.nameRun.int8(int64(t.Run))
		b.name.text(t.Names.Public(t.Run))
		if t.Names.Key != "" {
			b.nameKey.text(t.Names.Key)
		} else {
			b.nameKey.null()
		}
		b.nameOrigin.int8(originOf(t.Names))
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
			b.keyScope.int8(keyScopeOf(t.Names.KeyScope))
		}
	}
}

// originOf returns what started a run, as one number: the id of its parent or, if the run has none,
// its Trigger as a negative number. The statements turn the number into two columns again.
func originOf(n *naming.Names) int64 {
	if n.Parent != 0 {
		return int64(n.Parent)
	}
	return -int64(n.Trigger)
}

// keyScopeOf returns a naming.KeyScope as one number: 4 * Retain + Scope, with Retain in
// microseconds. The statements split the number again.
func keyScopeOf(h naming.KeyScope) int64 { return h.Retain.Microseconds()<<2 | int64(h.Scope) }

// changesRun reports whether a transition changes the row of an existing run.
func changesRun(t *store.Transition) bool {
	return t.Seq > 0 && (t.State != status.RunInvalid || t.Owner != nil || !t.NextCheck.IsZero())
}

func byName(a, b *store.Transition) int {
	return cmp.Or(strings.Compare(a.Names.Public(a.Run), b.Names.Public(b.Run)), cmp.Compare(a.Run, b.Run))
}

func byKey(a, b *store.Transition) int {
	return cmp.Or(strings.Compare(a.Names.Workflow, b.Names.Workflow), strings.Compare(a.Names.Key, b.Names.Key), cmp.Compare(a.Run, b.Run))
}

// reset empties all arrays and sets the types of their elements.
func (b *batch) reset() {
	for _, c := range []struct {
		a   *array
		oid uint32
	}{
		{&b.run, oidInt8}, {&b.seq, oidInt4}, {&b.at, oidTimestamptz}, {&b.owner, oidInt4}, {&b.state, oidInt2}, {&b.steps, oidBytea}, {&b.data, oidBytea},
		{&b.newRun, oidInt8}, {&b.newAt, oidTimestamptz}, {&b.newFlow, oidInt4}, {&b.newState, oidInt2}, {&b.newOwner, oidInt4}, {&b.newCheck, oidTimestamptz},
		{&b.oldRun, oidInt8}, {&b.oldAt, oidTimestamptz}, {&b.oldSeq, oidInt4}, {&b.oldState, oidInt2}, {&b.oldOwner, oidInt4}, {&b.oldCheck, oidTimestamptz}, {&b.oldHeard, oidInt4},
		{&b.nameRun, oidInt8}, {&b.name, oidText}, {&b.nameKey, oidText}, {&b.nameOrigin, oidInt8},
		{&b.keyFlow, oidText}, {&b.key, oidText}, {&b.keyRun, oidInt8}, {&b.keyScope, oidInt8},
		{&b.nodeRun, oidInt8}, {&b.node, oidInt4}, {&b.nodeStep, oidInt4}, {&b.nodeName, oidText},
		{&b.alertRun, oidInt8}, {&b.alertN, oidInt4}, {&b.kind, oidText}, {&b.alertStep, oidText}, {&b.code, oidText}, {&b.message, oidText},
		{&b.consumedRun, oidInt8}, {&b.consumed, oidInt8},
	} {
		c.a.reset(c.oid)
	}
}

func (b *batch) add(t *store.Transition) {
	b.run.int8(int64(t.Run))
	b.seq.int4(t.Seq)
	b.at.time(t.At)
	addOwner(&b.owner, t)
	addState(&b.state, t)
	switch {
	case t.Seq == 0:
		b.newRun.int8(int64(t.Run))
		b.newAt.time(t.At)
		b.newFlow.int4(int32(t.Workflow))
		addState(&b.newState, t)
		addOwner(&b.newOwner, t)
		addCheck(&b.newCheck, t)
	case changesRun(t):
		b.oldRun.int8(int64(t.Run))
		b.oldAt.time(t.At)
		b.oldSeq.int4(t.Seq)
		addState(&b.oldState, t)
		addOwner(&b.oldOwner, t)
		addCheck(&b.oldCheck, t)
		if t.Heard != nil {
			b.oldHeard.int4(*t.Heard)
		} else {
			b.oldHeard.null()
		}
	}
	if len(t.Steps) > 0 {
		b.scratch = storekit.AppendStepRows(b.scratch[:0], t.Steps)
		b.steps.blob(b.scratch)
	} else {
		b.steps.null()
	}
	b.data.blob(t.Data)
	for _, n := range t.NewNodes {
		b.nodeRun.int8(int64(t.Run))
		b.node.int4(n.Node)
		b.nodeStep.int4(n.Step)
		b.nodeName.text(naming.CleanText(n.Name))
	}
	for i, a := range t.Alerts {
		b.alertRun.int8(int64(t.Run))
		b.alertN.int4(int32(i))
		b.kind.text(naming.CleanText(a.Kind))
		b.alertStep.text(naming.CleanText(a.Step))
		b.code.text(naming.CleanText(a.Code))
		b.message.text(naming.CleanText(a.Message))
	}
	b.addNotices(t)
	b.addReplies(t)
	b.addMoved(t)
	for _, id := range t.Consumed {
		b.consumedRun.int8(int64(t.Run))
		b.consumed.int8(int64(id))
	}
}

// addNotices appends the notices of a transition to the arrays of alerts, with the kind noticeKind.
func (b *batch) addNotices(t *store.Transition) {
	for _, state := range t.Announce {
		b.alertRun.int8(int64(t.Run))
		b.alertN.int4(t.Seq)
		b.kind.text(noticeKind)
		b.alertStep.text(naming.CleanText(state))
		b.code.text("")
		b.message.text("")
	}
}

// addReplies appends the replies of a transition to the arrays of alerts, with the kind replyKind.
func (b *batch) addReplies(t *store.Transition) {
	if t.Post == nil {
		return
	}
	for i, state := range t.Post.States {
		b.alertRun.int8(int64(t.Run))
		b.alertN.int4(int32(i + 1))
		b.kind.text(replyKind)
		b.alertStep.text(naming.CleanText(state))
		b.code.text(naming.CleanText(t.Post.Sink))
		b.message.text(naming.CleanText(t.Post.Correlation))
	}
}

// addMoved appends the definition to which a transition moves its run to the arrays of alerts, with
// the kind movedKind.
func (b *batch) addMoved(t *store.Transition) {
	if t.Moved == 0 {
		return
	}
	b.alertRun.int8(int64(t.Run))
	b.alertN.int4(int32(t.Moved))
	b.kind.text(movedKind)
	b.alertStep.text("")
	b.code.text("")
	b.message.text("")
}

// addState appends the new state of the run, or NULL if the transition does not change the
// state.
func addState(a *array, t *store.Transition) {
	if t.State == status.RunInvalid {
		a.null()
		return
	}
	a.int2(int16(t.State))
}

// addOwner appends the new owner of the run, or NULL if the transition does not change the
// owner.
func addOwner(a *array, t *store.Transition) {
	if t.Owner == nil {
		a.null()
		return
	}
	a.int4(int32(*t.Owner))
}

// addCheck appends the new next_check of the run, or NULL if the transition does not change
// it.
func addCheck(a *array, t *store.Transition) {
	if t.NextCheck.IsZero() {
		a.null()
		return
	}
	a.time(t.NextCheck)
}

// statement returns the commit statement for the batch, and the arguments of the statement. The
// arguments are valid until the next call of statement or fill.
func (b *batch) statement(id store.EngineID, writer int, token int64, ifNone bool) (string, []any) {
	return b.shape(ifNone), b.args(id, writer, token, ifNone)
}

// shape returns the commit statement that has all parts which the batch needs. If `ifNone` is
// false, the statement fails if a transition conflicts with an existing row. If `ifNone` is true,
// the statement leaves out such a transition, and commits the other transitions.
func (b *batch) shape(ifNone bool) string {
	switch {
	case b.whole(ifNone) && ifNone:
		return journalConsumeIfNone
	case b.whole(ifNone):
		return journalConsume
	case b.heard:
		return journalHeard
	case b.side && ifNone:
		return journalSideIfNone
	case b.side:
		return journalSide
	case b.names && ifNone:
		return journalKeyedIfNone
	case b.keys:
		return journalKeyed
	case b.names:
		return journalNamed
	case ifNone:
		return journalCreateIfNone
	case b.creates && b.moves:
		return journalCreate
	case b.creates:
		return journalBegin
	case !b.moves:
		return journalPlain
	}
	return journalAppend
}

// whole reports whether the batch needs the statement with all parts: journalConsume or
// journalConsumeIfNone.
func (b *batch) whole(ifNone bool) bool {
	return b.consume || b.heard && (ifNone || b.creates || b.names || b.side)
}

// args returns the arguments of the statement that the method `shape` returns. They are valid until
// the next call of args or fill.
func (b *batch) args(id store.EngineID, writer int, token int64, ifNone bool) []any {
	args := append(b.sent[:0], int64(id), int64(writer), token, b.run.bytes(), b.seq.bytes(), b.at.bytes(), b.owner.bytes(), b.state.bytes(), b.steps.bytes(), b.data.bytes())
	all := b.whole(ifNone)
	side := b.side || all
	whole := b.names || side || ifNone
	if whole || b.creates {
		args = append(args, b.newRun.bytes(), b.newAt.bytes(), b.newFlow.bytes(), b.newState.bytes(), b.newOwner.bytes(), b.newCheck.bytes())
	}
	if whole || b.moves {
		args = append(args, b.oldRun.bytes(), b.oldAt.bytes(), b.oldSeq.bytes(), b.oldState.bytes(), b.oldOwner.bytes(), b.oldCheck.bytes())
	}
	if b.names || side {
		args = append(args, b.nameRun.bytes(), b.name.bytes(), b.nameKey.bytes(), b.nameOrigin.bytes())
	}
	if b.keys || side || b.names && ifNone {
		args = append(args, b.keyFlow.bytes(), b.key.bytes(), b.keyRun.bytes(), b.keyScope.bytes())
	}
	if side {
		args = append(args, b.nodeRun.bytes(), b.node.bytes(), b.nodeStep.bytes(), b.nodeName.bytes(),
			b.alertRun.bytes(), b.alertN.bytes(), b.kind.bytes(), b.alertStep.bytes(), b.code.bytes(), b.message.bytes())
	}
	switch {
	case all:
		args = append(args, b.consumedRun.bytes(), b.consumed.bytes(), b.oldHeard.bytes())
	case b.heard:
		args = append(args, b.oldHeard.bytes())
	}
	b.sent = args
	return args
}
