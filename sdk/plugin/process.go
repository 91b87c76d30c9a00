package plugin

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	goplugin "github.com/hashicorp/go-plugin"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/health/grpc_health_v1"
	"google.golang.org/grpc/status"

	pb "github.com/saga-engine/engine/sdk/plugin/internal/proto"
	"github.com/saga-engine/engine/sdk/schema"
)

// A Process is a running agent. Open makes it. The caller must call Close or Kill at the
// end. Its methods are safe for concurrent use.
type Process struct {
	child   *child
	client  *goplugin.Client
	conn    *grpc.ClientConn
	rpc     pb.AgentClient
	options OpenOptions
	schema  schema.Schema
	version int                // version of the protocol
	release context.CancelFunc // ends the control stream
	closing sync.Once
	asked   atomic.Bool                     // Close or Kill was called, so the end is expected
	config  atomic.Pointer[json.RawMessage] // configuration, for sdk.Excerpt; nil = none yet
	session *session                        // sends calls in batches; nil = every call has its own stream
	// broken is set when the session ends while the process is running. Then every call has
	// its own stream.
	broken atomic.Bool
}

// Protocol returns the version of the protocol that the process and this host have agreed
// on. From version 2 on, calls are sent in batches.
func (p *Process) Protocol() int { return p.version }

// liveSession returns the session that sends calls in batches; nil if every call has its
// own stream.
func (p *Process) liveSession() *session {
	if p.broken.Load() {
		return nil
	}
	return p.session
}

// takeControl opens the control stream. When this stream ends, the agent ends.
func (p *Process) takeControl(ctx context.Context) error {
	control, cancel := context.WithCancel(context.WithoutCancel(ctx))
	stop := context.AfterFunc(ctx, cancel)
	defer stop()
	stream, err := p.rpc.Control(control)
	if err == nil {
		_, err = stream.Recv()
	}
	if err != nil {
		cancel()
		return fmt.Errorf("take control: %w", err)
	}
	p.release = cancel
	return nil
}

// Schema describes what the agent can do. The caller must not change it.
func (p *Process) Schema() schema.Schema { return p.schema }

// Pid returns the process id. Once Done is closed, another process may have the same id.
func (p *Process) Pid() int { return p.child.pidNumber() }

// Done is closed when the process has ended, for any reason.
func (p *Process) Done() <-chan struct{} { return p.child.exited }

// Err returns nil while the process runs. Afterwards it returns an error that wraps
// ErrExited and says how the process ended.
func (p *Process) Err() error { return p.child.err() }

// Configure sends the agent its configuration, a JSON object; nil means {}. It must be
// called once, before the first Invoke. The error is the agent's own, or a *StartError if
// the process has ended.
func (p *Process) Configure(ctx context.Context, config json.RawMessage) error {
	if len(config) > p.options.PayloadLimit {
		return fmt.Errorf("plugin: configure %s: configuration of %d bytes, the limit is %d", p.schema.Name, len(config), p.options.PayloadLimit)
	}
	p.config.Store(&config)
	reply, err := p.rpc.Configure(ctx, &pb.ConfigureRequest{Config: config})
	if err != nil && (p.Err() != nil || status.Code(err) == codes.Unavailable) {
		return &StartError{Path: p.options.Path, Reason: ReasonExited, Err: fmt.Errorf("ended before it was configured: %w", p.explain(err))}
	}
	if err != nil {
		return fmt.Errorf("plugin: configure %s: %w", p.schema.Name, p.explain(err))
	}
	if text := reply.GetError(); text != "" {
		return fmt.Errorf("plugin: %s", text)
	}
	return nil
}

// configuration returns the agent's configuration.
func (p *Process) configuration() json.RawMessage {
	if c := p.config.Load(); c != nil {
		return *c
	}
	return nil
}

// Ping asks the agent for a sign of life.
func (p *Process) Ping(ctx context.Context) error {
	client := grpc_health_v1.NewHealthClient(p.conn)
	reply, err := client.Check(ctx, &grpc_health_v1.HealthCheckRequest{Service: goplugin.GRPCServiceName})
	if err != nil {
		return fmt.Errorf("plugin: ping %s: %w", p.schema.Name, p.explain(err))
	}
	if reply.GetStatus() != grpc_health_v1.HealthCheckResponse_SERVING {
		return fmt.Errorf("plugin: ping %s: %s", p.schema.Name, reply.GetStatus())
	}
	return nil
}

// Kill ends the process and its children at once. Calls in flight end with
// sdk.CodeAgentLost. Kill does not wait; Done is closed when the process has ended.
func (p *Process) Kill() {
	p.asked.Store(true)
	p.child.kill()
}

// Close asks the agent to end and waits for it. If that takes longer than
// OpenOptions.CloseGrace, it kills the process. Then it frees the resources of the process.
// Calls in flight are cancelled. Close may be called several times.
func (p *Process) Close() error {
	p.asked.Store(true)
	p.closing.Do(func() {
		// go-plugin waits without limit for an agent that does not answer.
		timer := time.AfterFunc(p.options.CloseGrace, p.child.kill)
		defer timer.Stop()
		p.client.Kill()
		p.release()
	})
	<-p.child.exited
	return nil
}

// explain returns how the process ended, if it has ended. Otherwise it returns err, the
// error of the transport.
func (p *Process) explain(err error) error {
	if gone := p.Err(); gone != nil {
		return gone
	}
	if over := p.child.killedFor(); over != nil {
		return over
	}
	return err
}

var errDeadline = errors.New("complete-by has passed")
