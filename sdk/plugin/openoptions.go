package plugin

import (
	"crypto/sha256"
	"errors"
	"fmt"
	"log/slog"
	"time"

	"github.com/saga-engine/engine/sdk/plugin/internal/leash"
)

// DefaultPayloadLimit is the largest size of an input or an output, in bytes, if
// OpenOptions.PayloadLimit is 0.
const DefaultPayloadLimit = 1 << 20

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
	StartTimeout time.Duration // longest time until Open returns; 0 = 15 s
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
