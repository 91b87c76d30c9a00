package plugin

import (
	"time"

	"github.com/saga-engine/engine/sdk"
	pb "github.com/saga-engine/engine/sdk/plugin/internal/proto"
)

// The enums of the SDK and of the protocol have the same numbers. A test checks this.

func callToWire(r sdk.Request) *pb.Call {
	return &pb.Call{
		Action:             r.Action,
		Purpose:            pb.Purpose(r.Purpose),
		Input:              r.Input,
		IdempotencyKey:     r.IdempotencyKey,
		ForwardKey:         r.ForwardKey,
		CompleteByUnixNano: r.CompleteBy.UnixNano(),
		RemainingNano:      int64(r.Remaining),
		Run:                r.Run,
		Workflow:           r.Workflow,
		Step:               r.Step,
		Attempt:            int32(r.Attempt),
		Fence:              r.Fence,
		Checkpoint:         checkpointToWire(r.Checkpoint),
	}
}

func callFromWire(c *pb.Call) sdk.Request {
	r := sdk.Request{
		Action:         c.GetAction(),
		Input:          c.GetInput(),
		IdempotencyKey: c.GetIdempotencyKey(),
		ForwardKey:     c.GetForwardKey(),
		CompleteBy:     time.Unix(0, c.GetCompleteByUnixNano()),
		Remaining:      time.Duration(c.GetRemainingNano()),
		Run:            c.GetRun(),
		Workflow:       c.GetWorkflow(),
		Step:           c.GetStep(),
		Attempt:        int(c.GetAttempt()),
		Fence:          c.GetFence(),
	}
	if p := c.GetPurpose(); p >= pb.Purpose_PURPOSE_DO && p <= pb.Purpose_PURPOSE_LOOKUP {
		r.Purpose = sdk.Purpose(p)
	}
	if cp := c.GetCheckpoint(); cp != nil {
		r.Checkpoint = &sdk.Checkpoint{Number: cp.GetNumber(), Blob: cp.GetBlob()}
	}
	return r
}

func checkpointToWire(c *sdk.Checkpoint) *pb.Checkpoint {
	if c == nil {
		return nil
	}
	return &pb.Checkpoint{Number: c.Number, Blob: c.Blob}
}

func eventToWire(ev sdk.Event) *pb.InvokeEvent {
	switch ev := ev.(type) {
	case sdk.Heartbeat:
		return &pb.InvokeEvent{Event: &pb.InvokeEvent_Heartbeat{Heartbeat: &pb.Heartbeat{Progress: ev.Progress, Note: ev.Note}}}
	case sdk.Checkpoint:
		return &pb.InvokeEvent{Event: &pb.InvokeEvent_Checkpoint{Checkpoint: checkpointToWire(&ev)}}
	}
	return &pb.InvokeEvent{}
}

func replyToWire(r sdk.Reply) *pb.Reply {
	return &pb.Reply{
		Outcome:        pb.Outcome(r.Outcome),
		Output:         r.Output,
		Code:           r.Code,
		Message:        r.Message,
		Permanent:      r.Permanent,
		RetryAfterNano: int64(r.RetryAfter),
	}
}

func replyToEvent(r sdk.Reply) *pb.InvokeEvent {
	return &pb.InvokeEvent{Event: &pb.InvokeEvent_Reply{Reply: replyToWire(r)}}
}

func replyFromWire(r *pb.Reply) sdk.Reply {
	reply := sdk.Reply{
		Output:     r.GetOutput(),
		Code:       r.GetCode(),
		Message:    r.GetMessage(),
		Permanent:  r.GetPermanent(),
		RetryAfter: time.Duration(r.GetRetryAfterNano()),
	}
	if o := r.GetOutcome(); o >= pb.Outcome_OUTCOME_RESULT && o <= pb.Outcome_OUTCOME_NOT_DONE {
		reply.Outcome = sdk.Outcome(o)
	}
	return reply
}
