package plugin

import (
	"context"
	"crypto/sha256"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"time"

	goplugin "github.com/hashicorp/go-plugin"
	"google.golang.org/grpc"

	"github.com/saga-engine/engine/sdk/plugin/internal/leash"
	pb "github.com/saga-engine/engine/sdk/plugin/internal/proto"
)

// Default limits for an agent. A process that takes more memory or threads is killed with
// all its descendants, and its error names the limit. A process that opens more files gets
// an error (T12). The limits work on Linux only.
const (
	DefaultMemory  = 2 << 30
	DefaultThreads = 1024
	DefaultFiles   = 16384
)

// MinFiles is the smallest allowed value of OpenOptions.MaxFiles. To start, an agent needs
// approximately ten open files, and its keeper needs another ten.
const MinFiles = 64

// OpenOptions says how to start an agent. Path is required. A zero value in any other
// field means the default.
type OpenOptions struct {
	Path         string       // path of the binary; absolute, or relative to the working directory
	Checksum     []byte       // SHA-256 that the binary must have; nil = not checked
	Env          []string     // environment, as KEY=value; no other variables are passed on
	Dir          string       // working directory; "" = the working directory of the host
	TempDir      string       // directory in which to create the private directory; "" = os.TempDir
	Logger       *slog.Logger // logger for all output of the agent; nil = the output is dropped
	PayloadLimit int          // largest size of an input or an output, in bytes; 0 = DefaultPayloadLimit
	// MaxMemory is the largest memory, in bytes, of the process and its descendants
	// together. Pages of files do not count. 0 = DefaultMemory.
	MaxMemory int64
	// MaxThreads is the largest number of threads of the process and its descendants
	// together. 0 = DefaultThreads.
	MaxThreads int
	MaxFiles   int // largest number of open files of each process, at least MinFiles; 0 = DefaultFiles
	// Protocol is the newest version of the protocol that the host offers to the agent. 0 =
	// the newest version that this package supports.
	Protocol     int
	StartTimeout time.Duration // longest time until the handshake is complete; 0 = 15 s
	CancelGrace  time.Duration // longest wait for a reply after a call was cancelled; 0 = 5 s
	CloseGrace   time.Duration // longest wait for an orderly end, before the process is killed; 0 = 3 s
}

func (o OpenOptions) withDefaults() OpenOptions {
	if o.Logger == nil {
		o.Logger = slog.New(slog.DiscardHandler)
	}
	if o.PayloadLimit == 0 {
		o.PayloadLimit = DefaultPayloadLimit
	}
	if o.MaxMemory == 0 {
		o.MaxMemory = DefaultMemory
	}
	if o.MaxThreads == 0 {
		o.MaxThreads = DefaultThreads
	}
	if o.MaxFiles == 0 {
		o.MaxFiles = DefaultFiles
	}
	if o.StartTimeout == 0 {
		o.StartTimeout = 15 * time.Second
	}
	if o.CancelGrace == 0 {
		o.CancelGrace = 5 * time.Second
	}
	if o.CloseGrace == 0 {
		o.CloseGrace = 3 * time.Second
	}
	return o
}

// limits returns the limits of the process.
func (o *OpenOptions) limits() leash.Limits {
	return leash.Limits{Memory: o.MaxMemory, Threads: o.MaxThreads, Files: o.MaxFiles}
}

func (o *OpenOptions) validate() error {
	switch {
	case o.Path == "":
		return errors.New("plugin: OpenOptions.Path is required")
	case len(o.Checksum) != 0 && len(o.Checksum) != sha256.Size:
		return fmt.Errorf("plugin: OpenOptions.Checksum has %d bytes, want %d", len(o.Checksum), sha256.Size)
	case o.PayloadLimit < 0 || o.StartTimeout < 0 || o.CancelGrace < 0 || o.CloseGrace < 0 || o.Protocol < 0,
		o.MaxMemory < 0 || o.MaxThreads < 0 || o.MaxFiles < 0:
		return errors.New("plugin: OpenOptions: limits and times must not be negative")
	case o.MaxFiles < MinFiles:
		return fmt.Errorf("plugin: OpenOptions.MaxFiles is %d, want at least %d", o.MaxFiles, MinFiles)
	}
	return nil
}

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
				grpc.MaxCallRecvMsgSize(o.PayloadLimit+messageRoom),
				grpc.MaxCallSendMsgSize(o.PayloadLimit+messageRoom)),
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
