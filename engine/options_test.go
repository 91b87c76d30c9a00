package engine_test

import (
	"strings"
	"testing"
	"time"

	"github.com/saga-engine/engine/engine"
	"github.com/saga-engine/engine/engine/store/memory"
)

// S36, S47, S74, S75: periods and sizes are settings with bounds; zero means
// the default.
func TestOptions(t *testing.T) {
	if err := (engine.Options{}).WithDefaults().Validate(); err != nil {
		t.Errorf("the defaults are refused: %v", err)
	}
	if o := (engine.Options{Lease: time.Second}).WithDefaults(); o.Validate() != nil || 2*o.MaxScan > o.Lease {
		t.Errorf("the defaults for a short lease: %+v, %v", o, o.Validate())
	}
	tests := map[string]struct {
		o    engine.Options
		want string
	}{
		"negative lease":       {engine.Options{Lease: -1}, "Options.Lease must be above zero"},
		"MinScan over MaxScan": {engine.Options{MinScan: time.Minute}, "Options.MinScan must be at most MaxScan (15s)"},
		"MaxScan over lease":   {engine.Options{Lease: time.Second, MaxScan: time.Second}, "Options.MaxScan must be at most half of Lease (1s)"},
		"no writers":           {engine.Options{Writers: -1}, "Options.Writers must be above zero"},
		"too many writers":     {engine.Options{Writers: 65}, "Options.Writers must be at most 64"},
		"row too large":        {engine.Options{MaxRow: 1 << 40}, "Options.MaxRow must be at most"},
	}
	for name, tt := range tests {
		if err := tt.o.WithDefaults().Validate(); err == nil || !strings.Contains(err.Error(), tt.want) {
			t.Errorf("%s: %v, want %q", name, err, tt.want)
		}
	}
	if _, err := engine.NewNode(engine.Config{}); err == nil || !strings.Contains(err.Error(), "Config.Store") {
		t.Errorf("NewNode without a store = %v", err)
	}
	if _, err := engine.NewNode(engine.Config{Store: memory.New(memory.Options{})}); err == nil || !strings.Contains(err.Error(), "Config.Invoker") {
		t.Errorf("NewNode without an invoker = %v", err)
	}
}
