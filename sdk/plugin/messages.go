package plugin

import (
	"math"
	"strings"
	"time"

	"google.golang.org/protobuf/encoding/protowire"

	"github.com/saga-engine/engine/sdk"
)

// The batches of a session are encoded and decoded here, field by field, because the generated
// code is slow: it would need more time than the rest of a call. The bytes are the same as for
// InvocationBatch and ResultBatch in agent.proto; a test compares both codecs. All other
// messages use the generated code.

// The largest size of a batch. Only a batch with a single item may have more than batchBytes bytes.
// A batch contains the calls that were queued while the previous batch was sent. There is no timer,
// so a single call is sent at once.
const (
	maxBatch   = 256     // number of calls, cancels, events and replies together
	batchBytes = 1 << 20 // size in bytes; if the limit for one message is smaller, that limit counts
)

// invocations is the message that the engine sends: an InvocationBatch.
type invocations struct {
	cancels []uint64
	calls   []*call
}

func (m *invocations) bound() int {
	n := len(m.cancels) * frame
	for _, c := range m.calls {
		n += c.size
	}
	return n
}

func (m *invocations) append(b []byte) []byte {
	var inv, body int
	for _, id := range m.cancels {
		b, inv = openField(b, 1)
		b = appendNumber(b, 1, int64(id))
		b, body = openField(b, 3)
		b = shutField(shutField(b, body), inv)
	}
	for _, c := range m.calls {
		b, inv = openField(b, 1)
		b = appendNumber(b, 1, int64(c.id))
		b, body = openField(b, 2)
		b = appendCall(b, &c.req)
		b = shutField(shutField(b, body), inv)
	}
	return b
}

// received is the message that the agent receives: an InvocationBatch.
type received struct {
	list  []invocation
	names names
}

type invocation struct {
	id     uint64
	call   bool
	cancel bool
	req    sdk.Request
}

func (m *received) parse(b []byte) error {
	clear(m.list)
	m.list = m.list[:0]
	return fields(b, func(f field) error {
		if f.number != 1 {
			return nil
		}
		m.list = append(m.list, invocation{})
		inv := &m.list[len(m.list)-1]
		return fields(f.data, func(f field) error {
			switch f.number {
			case 1:
				inv.id = f.value
			case 2:
				inv.call, inv.cancel, inv.req = true, false, sdk.Request{}
				return m.names.request(f.data, &inv.req)
			case 3:
				inv.call, inv.cancel = false, true
			}
			return nil
		})
	})
}

// An allowance says until when the agent may answer a call. The agent may answer until the duration
// `left` has passed since the time `start`, but never after the time `completeBy`.
type allowance struct {
	start      time.Time
	left       time.Duration
	completeBy time.Time
}

// over reports whether the time for an answer has passed, by the wall clock or the monotonic clock.
func (a *allowance) over(now time.Time) bool {
	return now.Sub(a.start) >= a.left || !now.Round(0).Before(a.completeBy)
}

// outgoing is a message of an agent about a call: an event or the reply. The agent sends it.
type outgoing struct {
	id    uint64
	event sdk.Event // the event; nil = the message is the reply
	reply sdk.Reply
	size  int // largest possible size of the message in a batch, in bytes
	time  *allowance
}

// results is the message that the agent sends: a ResultBatch.
type results struct {
	list []outgoing
	size int
}

func (m *results) bound() int { return m.size }

func (m *results) append(b []byte) []byte {
	for i := range m.list {
		o := &m.list[i]
		var at, body int
		b, at = openField(b, 1)
		b = appendNumber(b, 1, int64(o.id))
		switch ev := o.event.(type) {
		case nil:
			b, body = openField(b, 4)
			b = shutField(appendReply(b, &o.reply), body)
		case sdk.Heartbeat:
			b, body = openField(b, 2)
			if ev.Progress != 0 {
				b = protowire.AppendTag(b, 1, protowire.Fixed64Type)
				b = protowire.AppendFixed64(b, math.Float64bits(ev.Progress))
			}
			b = shutField(appendString(b, 2, ev.Note), body)
		case sdk.Checkpoint:
			b = appendCheckpoint(b, 3, &ev)
		}
		b = shutField(b, at)
	}
	return b
}

// bound computes the largest possible size of the message and stores it in o.size.
func (o *outgoing) bound() {
	o.size = frame + len(o.reply.Output) + len(o.reply.Code) + len(o.reply.Message)
	switch ev := o.event.(type) {
	case sdk.Heartbeat:
		o.size += len(ev.Note)
	case sdk.Checkpoint:
		o.size += len(ev.Blob)
	}
}

// answers is the message that the engine receives: a ResultBatch.
type answers struct {
	list   []answer
	window int
}

// An answer is a message of an agent about a call: an event or the reply. The engine has
// received it.
type answer struct {
	id    uint64
	event sdk.Event // the event; nil = the message is a reply, or an event of an unknown kind
	final bool      // the message is the reply of the call
	reply sdk.Reply
}

func (m *answers) parse(b []byte) error {
	clear(m.list)
	m.list = m.list[:0]
	return fields(b, func(f field) error {
		switch f.number {
		case 1:
			m.list = append(m.list, answer{})
			return m.list[len(m.list)-1].parse(f.data)
		case 2:
			m.window = int(uint32(f.value))
		}
		return nil
	})
}

func (a *answer) parse(b []byte) error {
	return fields(b, func(f field) error {
		switch f.number {
		case 1:
			a.id = f.value
		case 2:
			var h sdk.Heartbeat
			err := fields(f.data, func(f field) error {
				switch f.number {
				case 1:
					h.Progress = math.Float64frombits(f.value)
				case 2:
					h.Note = strings.ToValidUTF8(string(f.data), "")
				}
				return nil
			})
			a.event, a.final = h, false
			return err
		case 3:
			var c sdk.Checkpoint
			err := parseCheckpoint(f.data, &c)
			a.event, a.final = c, false
			return err
		case 4:
			a.event, a.final, a.reply = nil, true, sdk.Reply{}
			return parseReply(f.data, &a.reply)
		}
		return nil
	})
}
