package sdk

import (
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"math"
	"sync"
	"time"

	"github.com/saga-engine/engine/sdk/schema"
)

// maxNote is the largest size of the note of a heartbeat, in bytes. maxMessage is the largest size
// of an error text, in bytes.
const (
	maxNote    = 1 << 10
	maxMessage = 4 << 10
)

// A Call holds the data and the methods that an action gets in addition to its input. A unit test
// of an action calls the function of the action with sdktest.NewCall. The zero Call has a nil Logger,
// so an action that logs would panic with it. All methods of the zero Call can be used.
type Call struct {
	// IdempotencyKey is the same text for all attempts of a step, with the two exceptions that the
	// comment of Request.IdempotencyKey names. Pass the key to the remote service.
	IdempotencyKey string
	ForwardKey     string       // for an undo: the IdempotencyKey of the call to undo; otherwise ""
	CompleteBy     time.Time    // time at which the context ends; no answer is sent after that time
	Purpose        Purpose      // why the action is called: do, undo or lookup
	Run            string       // public id of the run
	Workflow       string       // name of the workflow
	Step           string       // name of the step
	Attempt        int          // number of the attempt; the first attempt has 1
	Fence          int64        // fencing token: each new owner of the run has a larger number
	Logger         *slog.Logger // logger for the action; it adds run, step and attempt to each line

	last   *Checkpoint
	emit   *emitter
	input  json.RawMessage // input of the call, for Excerpt
	config json.RawMessage // configuration of the agent, for Excerpt
}

// Heartbeat reports that the work continues. The parameter `progress` says how much of the work
// is done, from 0 to 1. A smaller value counts as 0, and a larger value as 1. The
// parameter `note` is a text for people about the present work; it may be empty. Heartbeat does
// nothing if the action does not declare Heartbeats.
func (c *Call) Heartbeat(progress float64, note string) {
	if c.emit == nil || !c.emit.schema.Heartbeats {
		return
	}
	if math.IsNaN(progress) {
		progress = 0
	}
	c.emit.send(Heartbeat{Progress: min(max(progress, 0), 1), Note: c.Excerpt(note, maxNote)})
}

// ErrCallEnded is the error of Call.Checkpoint when the call is over.
var ErrCallEnded = errors.New("sdk: the call has ended")

// Checkpoint reports to the engine how much of the work is done, so that the next attempt can
// continue from this point. The author of the agent divides the work into pieces and numbers them.
// The parameter n means that piece n and all pieces before it are done. The parameter `blob` is the
// data with which the next attempt continues after piece n.
//
// Checkpoint may return before the checkpoint has been sent, and long before it is durable. The
// engine stores checkpoints in order and before the call's answer, while the work continues. If
// checkpoints come faster than the engine can store them, the engine stores only the latest one. So
// after a crash, the next attempt may get an earlier checkpoint than the latest one that was sent.
// Therefore it must be safe to do the work that follows a checkpoint again.
//
// Checkpoint keeps no reference to blob. It returns an error if `blob` is larger than MaxCheckpoint
// or if the action does not declare Checkpoints. It returns ErrCallEnded if the call is over.
func (c *Call) Checkpoint(n int64, blob []byte) error {
	if c.emit == nil {
		return nil
	}
	if !c.emit.schema.Checkpoints {
		return errors.New("sdk: checkpoint: the action does not declare Checkpoints")
	}
	if len(blob) > MaxCheckpoint {
		return fmt.Errorf("sdk: checkpoint of %d bytes: the limit is %d", len(blob), MaxCheckpoint)
	}
	if !c.emit.send(Checkpoint{Number: n, Blob: append([]byte(nil), blob...)}) {
		return ErrCallEnded
	}
	return nil
}

// LastCheckpoint returns the last checkpoint that the engine stored for the earlier attempts of
// this step. The result `ok` is false if the engine stored none.
func (c *Call) LastCheckpoint() (n int64, blob []byte, ok bool) {
	if c.last == nil {
		return 0, nil, false
	}
	return c.last.Number, c.last.Blob, true
}

// Excerpt returns the beginning of a text, at most n bytes. If the cut would divide a value of
// the call's input or of the agent's configuration, the result ends before that value. This
// matters because the engine replaces secrets in an agent's messages, and it finds only
// complete secrets. So an agent that shortens the output of a service or a program must use
// Excerpt or ExcerptEnd.
func (c *Call) Excerpt(text string, n int) string { return Excerpt(text, n, c.input, c.config) }

// ExcerptEnd returns the end of a text, at most n bytes. If the cut would divide a value of the
// call's input or of the agent's configuration, the result begins after that value. The comment
// of Excerpt says why.
func (c *Call) ExcerptEnd(text string, n int) string {
	return excerptEnd(text, n, c.input, c.config)
}

// An emitter passes the events of a call to the host. After a call of the method `close`, and after
// the time in the field `until`, it drops all events.
type emitter struct {
	schema *schema.Action
	until  time.Time

	mu     sync.Mutex // protects the fields below
	closed bool
	out    func(Event)
}

func (e *emitter) send(ev Event) bool {
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.closed || !time.Now().Before(e.until) {
		return false
	}
	if e.out != nil {
		e.out(ev)
	}
	return true
}

func (e *emitter) close() {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.closed = true
}
