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

// A Process is a running agent. Open makes one; Close or Kill must be called in
// the end. Its methods are safe for concurrent use.
type Process struct {
	child   *child
	client  *goplugin.Client
	conn    *grpc.ClientConn
	rpc     pb.AgentClient
	options OpenOptions
	schema  schema.Schema
	version int                // of the protocol
	release context.CancelFunc // ends the control stream
	closing sync.Once
	asked   atomic.Bool                     // Close or Kill was called, so that the end is no surprise
	config  atomic.Pointer[json.RawMessage] // for the messages of replies; nil = none yet
	session *session                        // of version 2 on; nil = every call goes alone
	broken  atomic.Bool                     // the session ended while the process lived: every call goes alone
}

// Protocol returns the version of the protocol that the process and this host
// have agreed on. Calls go in batches from version 2 on.
func (p *Process) Protocol() int { return p.version }

// liveSession returns what carries calls in batches; nil if they go alone.
func (p *Process) liveSession() *session {
	if p.broken.Load() {
		return nil
	}
	return p.session
}

// takeControl opens the stream whose end ends the agent.
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

// Schema returns what the agent can do. The caller must not change it.
func (p *Process) Schema() schema.Schema { return p.schema }

// Pid returns the process id; it may be another process's once Done is closed.
func (p *Process) Pid() int { return p.child.pidNumber() }

// Done is closed when the process has ended, for any reason.
func (p *Process) Done() <-chan struct{} { return p.child.exited }

// Err returns nil while the process runs; then an error that is ErrExited and
// says how it ended.
func (p *Process) Err() error { return p.child.err() }

// Configure hands over the agent's configuration, a JSON object; nil means {}.
// It is called once, before the first Invoke. The error is the agent's own, or a
// *StartError if the process has ended.
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

// configuration returns what the agent was configured with.
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

// Kill ends the process and its children at once. Calls that are out end with
// sdk.CodeAgentLost. It does not wait; Done tells when the process has ended.
func (p *Process) Kill() {
	p.asked.Store(true)
	p.child.kill()
}

// Close asks the agent to end, waits for it, kills it if that takes longer than
// OpenOptions.CloseGrace, and frees what the process held. Calls that are out
// are cancelled. It may be called several times.
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

// explain prefers the end of the process to what the transport says about it.
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
