package pgtest

import (
	"context"
	_ "embed"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
)

//go:embed volume/volume.c
var volumeSource []byte

// StartOnVolume starts a cluster for which Fill can imitate a full disk volume. In addition to the
// server binaries, StartOnVolume needs a C compiler (cc) and a system that supports LD_PRELOAD.
func StartOnVolume(ctx context.Context) (*Cluster, error) {
	c, err := prepare()
	if err != nil {
		return nil, err
	}
	if err = c.mountVolume(ctx); err == nil {
		err = c.start(ctx)
	}
	if err != nil {
		return nil, errors.Join(err, os.RemoveAll(c.dir))
	}
	return c, nil
}

// mountVolume compiles a library that intercepts the server's writes to files. It sets c.env so
// that the server loads this library.
func (c *Cluster) mountVolume(ctx context.Context) error {
	source, library := filepath.Join(c.dir, "volume.c"), filepath.Join(c.dir, "volume.so")
	if err := os.WriteFile(source, volumeSource, 0o644); err != nil {
		return fmt.Errorf("write the volume's source: %w", err)
	}
	if out, err := exec.CommandContext(ctx, "cc", "-O1", "-shared", "-fPIC", "-o", library, source, "-ldl").CombinedOutput(); err != nil {
		return fmt.Errorf("compile the volume (is a C compiler installed as cc?): %w\n%s", err, out)
	}
	if err := os.Chmod(library, 0o755); err != nil {
		return fmt.Errorf("let the server read the volume: %w", err)
	}
	c.env = []string{"LD_PRELOAD=" + library, "PGTEST_FULL=" + c.fullFlag()}
	return nil
}

func (c *Cluster) fullFlag() string { return filepath.Join(c.dir, "full") }

// Fill makes the volume seem full: no file of the server can grow until Free is called. The
// cluster must have been started by StartOnVolume; otherwise Fill returns an error.
func (c *Cluster) Fill() error {
	if c.env == nil {
		return errors.New("fill the volume: the cluster was not started on one")
	}
	if err := os.WriteFile(c.fullFlag(), nil, 0o644); err != nil {
		return fmt.Errorf("fill the volume: %w", err)
	}
	return nil
}

// Free ends the effect of Fill: the files of the server can grow again. If Fill was not called,
// Free does nothing.
func (c *Cluster) Free() error {
	if err := os.Remove(c.fullFlag()); err != nil && !errors.Is(err, os.ErrNotExist) {
		return fmt.Errorf("make room on the volume: %w", err)
	}
	return nil
}

// Ended returns a channel that is closed when the server has ended, for any reason.
func (c *Cluster) Ended() <-chan struct{} { return c.done }
