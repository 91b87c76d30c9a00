package plugin

import (
	"bytes"
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"reflect"
	"strings"
	"testing"
	"time"

	"google.golang.org/protobuf/proto"

	"github.com/saga-engine/engine/sdk"
	pb "github.com/saga-engine/engine/sdk/plugin/internal/proto"
)

// maker makes random values, with texts of up to large bytes.
type maker struct {
	*rand.Rand
	large int
}

func (m maker) text() string {
	words := []string{"", "a", "reserve", "schön", strings.Repeat("x", 127), strings.Repeat("y", 128), strings.Repeat("z", m.large)}
	return words[m.IntN(len(words))]
}

func (m maker) number() int64 {
	numbers := []int64{0, 1, -1, 127, 128, 1 << 31, -(1 << 31), 1<<63 - 1, -1 << 63}
	return numbers[m.IntN(len(numbers))]
}

func (m maker) bytes() []byte {
	if s := m.text(); s != "" {
		return []byte(s)
	}
	return nil
}

func (m maker) request() sdk.Request {
	r := sdk.Request{
		Action: m.text(), Purpose: sdk.Purpose(m.IntN(4)), Input: m.bytes(), IdempotencyKey: m.text(), ForwardKey: m.text(),
		CompleteBy: time.Unix(0, m.number()), Remaining: time.Duration(m.number()), Run: m.text(), Workflow: m.text(), Step: m.text(),
		Attempt: int(int32(m.number())), Fence: m.number(),
	}
	if m.IntN(2) == 0 {
		r.Checkpoint = &sdk.Checkpoint{Number: m.number(), Blob: m.bytes()}
	}
	return r
}

func (m maker) outgoing(id uint64) outgoing {
	o := outgoing{id: id}
	switch m.IntN(3) {
	case 0:
		o.event = sdk.Heartbeat{Progress: m.Float64() - 0.5, Note: m.text()}
	case 1:
		o.event = sdk.Checkpoint{Number: m.number(), Blob: m.bytes()}
	default:
		o.reply = sdk.Reply{
			Outcome: sdk.Outcome(m.IntN(5)), Output: m.bytes(), Code: m.text(), Message: m.text(),
			Permanent: m.IntN(2) == 0, RetryAfter: time.Duration(m.number()),
		}
	}
	o.bound()
	return o
}

func wire(t *testing.T, m proto.Message) []byte {
	t.Helper()
	data, err := proto.Marshal(m)
	if err != nil {
		t.Fatal(err)
	}
	return data
}

// Batches mean to this package what they mean to the generated code, in both
// directions, and are no larger than was thought.
func TestCodecAgreesWithTheGeneratedCode(t *testing.T) {
	m := maker{rand.New(rand.NewPCG(1, 2)), 20_000}
	for range 300 {
		var out invocations
		want := &pb.InvocationBatch{}
		for range m.IntN(5) {
			id := m.Uint64()
			out.cancels = append(out.cancels, id)
			want.Invocations = append(want.Invocations, &pb.Invocation{Id: id, Request: &pb.Invocation_Cancel{Cancel: &pb.Cancel{}}})
		}
		for range m.IntN(5) {
			c := &call{req: m.request(), id: m.Uint64()}
			c.size = callBound(&c.req)
			out.calls = append(out.calls, c)
			want.Invocations = append(want.Invocations, &pb.Invocation{Id: c.id, Request: &pb.Invocation_Call{Call: callToWire(c.req)}})
		}
		data := out.append(nil)
		var got pb.InvocationBatch
		if err := proto.Unmarshal(data, &got); err != nil || !proto.Equal(&got, want) {
			t.Fatalf("written %v, %v\nwant %v", &got, err, want)
		}
		if len(data) > out.bound() {
			t.Fatalf("%d bytes, thought to be %d at most", len(data), out.bound())
		}
		in := received{names: names{}}
		if err := in.parse(wire(t, want)); err != nil {
			t.Fatal(err)
		}
		for i, inv := range in.list {
			w := want.GetInvocations()[i]
			if inv.id != w.GetId() || inv.cancel != (w.GetCancel() != nil) || inv.call != (w.GetCall() != nil) {
				t.Fatalf("read %+v, want %v", inv, w)
			}
			if inv.call && !reflect.DeepEqual(inv.req, callFromWire(w.GetCall())) {
				t.Fatalf("read %+v\nwant %+v", inv.req, callFromWire(w.GetCall()))
			}
		}
	}
	for range 300 {
		var out results
		want := &pb.ResultBatch{}
		for range m.IntN(8) {
			o := m.outgoing(m.Uint64())
			out.list = append(out.list, o)
			out.size += o.size
			r := &pb.Result{Id: o.id}
			switch ev := o.event.(type) {
			case sdk.Heartbeat:
				r.Event = &pb.Result_Heartbeat{Heartbeat: &pb.Heartbeat{Progress: ev.Progress, Note: ev.Note}}
			case sdk.Checkpoint:
				r.Event = &pb.Result_Checkpoint{Checkpoint: checkpointToWire(&ev)}
			default:
				r.Event = &pb.Result_Reply{Reply: replyToWire(o.reply)}
			}
			want.Results = append(want.Results, r)
		}
		data := out.append(nil)
		var got pb.ResultBatch
		if err := proto.Unmarshal(data, &got); err != nil || !proto.Equal(&got, want) {
			t.Fatalf("written %v, %v\nwant %v", &got, err, want)
		}
		if len(data) > out.bound() {
			t.Fatalf("%d bytes, thought to be %d at most", len(data), out.bound())
		}
		want.Window = uint32(m.number())
		var in answers
		if err := in.parse(wire(t, want)); err != nil || in.window != int(want.GetWindow()) {
			t.Fatal(err, in.window)
		}
		for i, a := range in.list {
			w := want.GetResults()[i]
			if a.final != (w.GetReply() != nil) || a.id != w.GetId() {
				t.Fatalf("read %+v, want %v", a, w)
			}
			if a.final && !reflect.DeepEqual(a.reply, replyFromWire(w.GetReply())) {
				t.Fatalf("read %+v\nwant %+v", a.reply, replyFromWire(w.GetReply()))
			}
			if !a.final && fmt.Sprint(a.event) != fmt.Sprint(out.list[i].event) {
				t.Fatalf("read %v\nwant %v", a.event, out.list[i].event)
			}
		}
	}
}

// What is read does not change when the message's memory is used again.
func TestCodecKeepsNoReference(t *testing.T) {
	req := request("echo", `{"value":"x"}`)
	req.Checkpoint = &sdk.Checkpoint{Number: 1, Blob: []byte("blob")}
	data := (&invocations{calls: []*call{{req: req, id: 1}}}).append(nil)
	in := received{names: names{}}
	if err := in.parse(data); err != nil {
		t.Fatal(err)
	}
	said := (&results{list: []outgoing{{id: 1, reply: sdk.Reply{Outcome: sdk.OutcomeResult, Output: json.RawMessage(`{"id":"x"}`)}}}}).append(nil)
	var heard answers
	if err := heard.parse(said); err != nil {
		t.Fatal(err)
	}
	for _, b := range [][]byte{data, said} {
		for i := range b {
			b[i] = 0xff
		}
	}
	got := in.list[0].req
	if got.Action != "echo" || string(got.Input) != `{"value":"x"}` || got.Run != "run-1" || string(got.Checkpoint.Blob) != "blob" {
		t.Errorf("request = %+v", got)
	}
	if string(heard.list[0].reply.Output) != `{"id":"x"}` {
		t.Errorf("reply = %+v", heard.list[0].reply)
	}
}

// T11: no bytes make the readers panic, and what they take is what the generated
// code takes, up to texts that are not UTF-8.
func FuzzCodec(f *testing.F) {
	m := maker{rand.New(rand.NewPCG(3, 4)), 200}
	for range 20 {
		f.Add((&invocations{cancels: []uint64{m.Uint64()}, calls: []*call{{req: m.request(), id: m.Uint64()}}}).append(nil))
		o := results{list: []outgoing{m.outgoing(1), m.outgoing(2)}}
		f.Add(o.append(nil))
	}
	for _, seed := range []string{"", "\x00", "\x0a", "\x0a\x00", "\x0a\xff\xff\xff\xff\x0f", "\x0a\x02\x12\x05", "\x0b\x0c", "\x10\xff", "\x0a\x04\x22\x02\x08\x80"} {
		f.Add([]byte(seed))
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		before := bytes.Clone(data)
		in := received{names: names{}}
		errIn := in.parse(data)
		var out answers
		errOut := out.parse(data)
		if !bytes.Equal(data, before) {
			t.Error("the message was changed")
		}
		if proto.Unmarshal(data, &pb.InvocationBatch{}) == nil && errIn != nil {
			t.Errorf("the generated code reads invocations: %v", errIn)
		}
		if proto.Unmarshal(data, &pb.ResultBatch{}) == nil && errOut != nil {
			t.Errorf("the generated code reads results: %v", errOut)
		}
	})
}
