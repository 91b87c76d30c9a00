package plugin

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"log/slog"
	"os"
	"os/signal"
	"path/filepath"
	"strconv"
	"syscall"

	"github.com/hashicorp/go-hclog"
	goplugin "github.com/hashicorp/go-plugin"
	"google.golang.org/grpc"

	"github.com/saga-engine/engine/sdk"
	"github.com/saga-engine/engine/sdk/heap"
	"github.com/saga-engine/engine/sdk/private"
	"github.com/saga-engine/engine/sdk/schema"
)

// Serve makes the calling program an agent process. It is the last call in main. Serve
// returns when the engine has closed the connection. If the program was started as
// `engine-agent-NAME describe`, Serve only prints the agent's Description as JSON.
//
// Serve ends the process with status 1, after printing the reason, in two cases: the schema of the
// agent has mistakes; a person started the program by hand. If the engine is gone, or the process
// receives SIGTERM, Serve ends the process without a message. If the process leads its process
// group, Serve kills the whole group.
//
// On Linux, Serve prevents other processes of the same user from reading the memory and
// environment of this process: see private.Keep.
//
// Serve makes the garbage collector run less often: see heap.Pace.
func Serve(a *sdk.Agent) {
	if code := serve(a, os.Args[1:], os.Stderr); code != 0 {
		os.Exit(code)
	}
}

func serve(a *sdk.Agent, args []string, stderr io.Writer) int {
	schema, err := a.Schema()
	if err != nil {
		fmt.Fprintln(stderr, err)
		return 1
	}
	if len(args) == 1 && args[0] == "describe" {
		if err := describeTo(realStdout, schema); err != nil {
			fmt.Fprintln(stderr, err)
			return 1
		}
		return 0
	}
	if os.Getenv(cookieName) != cookieValue {
		fmt.Fprintf(stderr, `%s is the agent %q, version %s. The engine starts it when a workflow needs it;
it does nothing on its own. To see what it can do:
    %s describe
`, filepath.Base(os.Args[0]), schema.Name, schema.Version, os.Args[0])
		return 1
	}
	return serveProcess(a, schema)
}

func describeTo(w io.Writer, s schema.Schema) error {
	enc := json.NewEncoder(w)
	enc.SetIndent("", "  ")
	if err := enc.Encode(Description{Schema: s, ProtocolVersions: sortedVersions(versions(nil, 0))}); err != nil {
		return fmt.Errorf("describe agent %s: %w", s.Name, err)
	}
	return nil
}

// serveProcess runs the gRPC server until the engine closes the server or is gone. It returns
// the exit status of the process.
func serveProcess(a *sdk.Agent, schema schema.Schema) int {
	stderr := os.Stderr // go-plugin later replaces the variable os.Stderr
	// Write the lines of all levels: only the engine knows which levels people want to see.
	logger := slog.New(slog.NewJSONHandler(stderr, &slog.HandlerOptions{Level: slog.LevelDebug}))
	if err := private.Keep(); err != nil {
		logger.Warn("other processes of this user can read this agent's environment and memory", "error", err)
	}
	limit := payloadLimit(logger)
	life := newLife(os.Getenv(goplugin.EnvUnixSocketDir))
	life.logger = logger
	server := newServer(a, schema, life, logger, limit)
	// If go-plugin sent the output of the process over the connection, the last output before the
	// end of the process would be lost. So the process writes to standard error, which the engine
	// reads to the end.
	server.controlled = func() { os.Stdout, os.Stderr = stderr, stderr }

	terminated := make(chan os.Signal, 1)
	signal.Notify(terminated, syscall.SIGTERM)
	go func() {
		<-terminated
		life.lost("terminated")
	}()
	sent, err := openHandshake(realStdout, stderr)
	if err != nil {
		logger.Error("prepare the handshake", "error", err)
		return 1
	}
	life.expectEngine()
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	go heap.Pace(ctx, heap.AgentGrowth)
	// go-plugin's Serve prints the handshake, replaces os.Stdout, and then serves calls.
	goplugin.Serve(&goplugin.ServeConfig{
		HandshakeConfig:  handshake(),
		VersionedPlugins: versions(server, 0),
		Logger:           hclog.New(&hclog.LoggerOptions{Output: stderr, JSONFormat: true, Level: hclog.Warn}),
		GRPCServer: func(opts []grpc.ServerOption) *grpc.Server {
			return grpc.NewServer(append(opts,
				grpc.ForceServerCodecV2(newCodec()),
				grpc.StaticStreamWindowSize(streamWindow), grpc.StaticConnWindowSize(connWindow),
				grpc.MaxRecvMsgSize(limit+messageOverhead), grpc.MaxSendMsgSize(limit+messageOverhead))...)
		},
	})
	life.close()
	if !sent.Load() {
		return 1 // go-plugin has logged the reason
	}
	return 0
}

// payloadLimit returns the payload limit, in bytes, that the engine has set in the environment. If
// the engine has set none, or the text is not a positive number, it returns DefaultPayloadLimit.
func payloadLimit(logger *slog.Logger) int {
	text := os.Getenv(envLimit)
	if text == "" {
		return DefaultPayloadLimit
	}
	limit, err := strconv.Atoi(text)
	if err != nil || limit <= 0 {
		logger.Warn("payload limit not understood", "variable", envLimit)
		return DefaultPayloadLimit
	}
	return limit
}
