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

// maxNote is the most bytes of a heartbeat's note, maxMessage of an error text.
const (
	maxNote    = 1 << 10
	maxMessage = 4 << 10
)

// A Call holds what an action gets in addition to its input. The zero Call is enough for a
// unit test of an action.
type Call struct {
	IdempotencyKey string       // equal over all attempts of a step: hand it to the remote service
	ForwardKey     string       // for an undo: IdempotencyKey of the call to undo
	CompleteBy     time.Time    // also the context's deadline; afterwards nothing is sent
	Purpose        Purpose      // do, undo or lookup
	Run            string       // public run id
	Workflow       string       // workflow's name
	Step           string       // step's name
	Attempt        int          // counts from 1
	Fence          int64        // rises with every change of the engine that owns the run
	Logger         *slog.Logger // tagged with run, step and attempt

	last   *Checkpoint
	emit   *emitter
	input  json.RawMessage // for Excerpt
	config json.RawMessage // of the agent, for Excerpt
}

// Heartbeat says that the work goes on, which part of it is done (0 to 1; other
// values are clamped) and, if the note is not empty, what is being done. It
// does nothing if the action does not declare Heartbeats.
func (c *Call) Heartbeat(progress float64, note string) {
	if c.emit == nil || !c.emit.schema.Heartbeats {
		return
	}
	if math.IsNaN(progress) {
		progress = 0
	}
	c.emit.send(Heartbeat{Progress: min(max(progress, 0), 1), Note: c.Excerpt(note, maxNote)})
}

// ErrCallEnded is returned by Call.Checkpoint when the call is over.
var ErrCallEnded = errors.New("sdk: the call has ended")

// Checkpoint hands the engine progress that is to survive this attempt:
// everything up to step n is done, and blob is what a rerun needs to continue
// after it. It returns when the checkpoint has been sent, not when it is
// durable: the engine stores it while the work goes on, in order and before
// the call's answer, and of several that come faster than it can store them
// only the last. So a rerun after a crash may see an earlier checkpoint than
// the last one of which this function returned, and must bear doing again what
// came after it. It keeps no reference to blob. It fails if the blob is larger than
// MaxCheckpoint, if the action does not declare Checkpoints, and with
// ErrCallEnded when the call is over.
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

// LastCheckpoint returns what an earlier attempt recorded last; ok is false if
// there is nothing to continue from.
func (c *Call) LastCheckpoint() (n int64, blob []byte, ok bool) {
	if c.last == nil {
		return 0, nil, false
	}
	return c.last.Number, c.last.Blob, true
}

// Excerpt returns the beginning of text, at most n bytes of it. Where the cut would
// go through a value of the call's input or of the agent's configuration, the text
// ends before that value. The reason: the engine replaces secrets in what an agent
// says, and it finds a secret only as a whole. So an agent that shortens what a
// service or a program has said must do it with Excerpt or ExcerptEnd.
func (c *Call) Excerpt(text string, n int) string { return Excerpt(text, n, c.input, c.config) }

// ExcerptEnd is Excerpt for the end of text.
func (c *Call) ExcerptEnd(text string, n int) string {
	return excerptEnd(text, n, c.input, c.config)
}

// An emitter passes events to the host until it is closed or the call's time is over.
type emitter struct {
	schema *schema.Action
	until  time.Time

	mu     sync.Mutex // protects following fields
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
