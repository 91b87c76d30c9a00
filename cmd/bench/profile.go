package main

import (
	"errors"
	"fmt"
	"os"
	"runtime/pprof"
)

// A profiler writes one CPU profile of this process, in which the engine works:
// of the first thing that is worth one.
type profiler struct {
	path string // "" = none
}

// during calls fn under the profile, unless it has been written before.
func (p *profiler) during(fn func() error) (err error) {
	if p.path == "" {
		return fn()
	}
	f, err := os.Create(p.path)
	if err != nil {
		return fmt.Errorf("write a profile: %w", err)
	}
	p.path = ""
	if err := pprof.StartCPUProfile(f); err != nil {
		return errors.Join(fmt.Errorf("write a profile: %w", err), f.Close())
	}
	defer func() {
		pprof.StopCPUProfile()
		err = errors.Join(err, f.Close())
	}()
	return fn()
}
