package plugin

import (
	"context"
	"encoding/json"
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

// A Process is a running agent, started by Open. The caller must call Close or Kill at the
// end. The methods are safe for concurrent use.
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
	config  atomic.Pointer[json.RawMessage] // the agent's configuration, for sdk.Excerpt; nil = none yet
	session *session                        // sends calls in batches; nil = every call has its own stream
	// broken is true if the session has ended while the process was running. Then every later
	// call has its own stream.
	broken atomic.Bool
}

// Protocol returns the version of the protocol that this host and the process use. From
// version 2 on, the host sends calls in batches.
func (p *Process) Protocol() int { return p.version }

// liveSession returns the session that sends calls in batches; nil if every call has its
// own stream.
func (p *Process) liveSession() *session {
	if p.broken.Load() {
		return nil
	}
	return p.session
}

// takeControl opens the control stream to the agent. When this stream ends, the agent ends.
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

// Schema returns the schema of the agent. The caller must not change it.
func (p *Process) Schema() schema.Schema { return p.schema }

// Pid returns the process id. Once the channel Done is closed, the system may give the same id
// to another process.
func (p *Process) Pid() int { return p.child.pidNumber() }

// Done returns a channel that is closed when the process has ended, for any reason.
func (p *Process) Done() <-chan struct{} { return p.child.exited }

// Err returns nil while the process runs. Afterwards it returns an error that wraps
// ErrExited and says how the process ended.
func (p *Process) Err() error { return p.child.err() }

// Configure sends the agent its configuration, a JSON object; nil means {}. It must be called once,
// before the first call of an action. If the process has ended, or the connection is lost, the
// error is a *StartError. In all other cases the error says that the agent has refused the
// configuration, that the configuration is too large, or that the call has failed.
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

// configuration returns the agent's configuration; nil if Configure was not called yet.
func (p *Process) configuration() json.RawMessage {
	if c := p.config.Load(); c != nil {
		return *c
	}
	return nil
}

// Ping asks the agent whether it can serve calls. It returns an error if the agent does not
// answer, or answers that it cannot serve calls.
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

// Kill ends the process and its children at once. A call that the agent may have received ends with
// sdk.CodeAgentLost, unless the call was cancelled or its complete-by has passed. Kill does not
// wait until the process has ended; use Done for that.
func (p *Process) Kill() {
	p.asked.Store(true)
	p.child.kill()
}

// Close asks the agent to end, frees the resources of the process, and waits until the process has
// ended. If the agent does not end within OpenOptions.CloseGrace, Close kills the process. The
// agent cancels the calls in flight. Close may be called several times.
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

// explain returns an error that says how the process ended, or which limit it exceeded. If
// the process runs normally, explain returns err, which is an error of the connection.
func (p *Process) explain(err error) error {
	if gone := p.Err(); gone != nil {
		return gone
	}
	if over := p.child.killedFor(); over != nil {
		return over
	}
	return err
}
