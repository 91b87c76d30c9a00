package plugin

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"time"

	goplugin "github.com/hashicorp/go-plugin"
	"google.golang.org/grpc"

	pb "github.com/saga-engine/engine/sdk/plugin/internal/proto"
)

// Open starts an agent and reads its schema. The process runs until it ends itself, or until
// Close or Kill is called. The parameter `ctx` limits only the start. The error is a
// *StartError if the binary is the cause.
func Open(ctx context.Context, options OpenOptions) (*Process, error) {
	o := options.withDefaults()
	if err := o.validate(); err != nil {
		return nil, err
	}
	path, err := executable(o.Path)
	if err != nil {
		return nil, err
	}
	o.Path = path
	ctx, cancel := context.WithTimeout(ctx, o.StartTimeout)
	defer cancel()
	l := newLines(o.Logger, time.Now)
	c := newChild(&o, l)
	client := goplugin.NewClient(&goplugin.ClientConfig{
		HandshakeConfig:  handshake(),
		VersionedPlugins: versions(nil, o.Protocol),
		RunnerFunc:       c.prepare,
		AllowedProtocols: []goplugin.Protocol{goplugin.ProtocolGRPC},
		AutoMTLS:         true,
		SkipHostEnv:      true,
		StartTimeout:     2 * o.StartTimeout, // longer than the timeout of ctx, so ctx ends first
		Logger:           newPluginLogger(o.Logger),
		SyncStdout:       l.writer("stdout"),
		SyncStderr:       l.writer("stderr"),
		UnixSocketConfig: &goplugin.UnixSocketConfig{TempDir: o.TempDir},
		GRPCDialOptions: []grpc.DialOption{
			grpc.WithDisableServiceConfig(),
			grpc.WithDisableRetry(),
			grpc.WithStaticStreamWindowSize(streamWindow), grpc.WithStaticConnWindowSize(connWindow),
			grpc.WithDefaultCallOptions(
				grpc.MaxCallRecvMsgSize(o.PayloadLimit+messageOverhead),
				grpc.MaxCallSendMsgSize(o.PayloadLimit+messageOverhead)),
		},
	})
	stop := context.AfterFunc(ctx, c.kill)
	p, err := connect(ctx, client, c)
	c.forgetCopy()
	if stop(); err == nil {
		err = ctx.Err()
	}
	if err != nil {
		if p != nil {
			p.release()
		}
		ended := c.hasEnded()
		c.kill()
		client.Kill()
		if c.dir != "" {
			// After a failed start, go-plugin does not remove the directory.
			err = errors.Join(err, os.RemoveAll(c.dir))
		}
		return nil, c.startError(ctx, err, ended)
	}
	return p, nil
}

func connect(ctx context.Context, client *goplugin.Client, c *child) (*Process, error) {
	protocol, err := client.Client()
	if err != nil {
		return nil, err
	}
	raw, err := protocol.Dispense(pluginName)
	if err != nil {
		return nil, err
	}
	conn, ok := raw.(*grpc.ClientConn)
	if !ok {
		return nil, fmt.Errorf("no connection: %T", raw)
	}
	p := &Process{
		child: c, client: client, conn: conn, rpc: pb.NewAgentClient(conn), options: *c.options,
		version: client.NegotiatedVersion(),
	}
	if err := p.takeControl(ctx); err != nil {
		return nil, err
	}
	reply, err := p.rpc.Describe(ctx, &pb.DescribeRequest{})
	if err != nil {
		p.release()
		return nil, fmt.Errorf("describe: %w", err)
	}
	if err := json.Unmarshal(reply.GetSchema(), &p.schema); err != nil {
		p.release()
		return nil, fmt.Errorf("schema: %w", err)
	}
	if p.version >= ProtocolBatched {
		if err := p.openSession(ctx); err != nil {
			p.release()
			return nil, err
		}
	}
	return p, nil
}
