package plugin

import (
	"fmt"
	"os"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/saga-engine/engine/sdk"
)

// BenchmarkCalls compares the two ways in which calls travel, with 100 bytes of
// input and of output, through real processes: calls a second, and the CPU time
// that a call costs on each side.
func BenchmarkCalls(b *testing.B) {
	input := fmt.Sprintf(`{"value":%q}`, strings.Repeat("x", 88))
	for _, callers := range []int{1, 16, 64, 256} {
		for _, way := range []struct {
			name     string
			protocol int
		}{{"unary", ProtocolUnary}, {"batched", ProtocolBatched}} {
			b.Run(fmt.Sprintf("%s/%d", way.name, callers), func(b *testing.B) {
				p, err := Open(b.Context(), OpenOptions{Path: os.Args[0], Env: []string{envMode + "=agent"}, Protocol: way.protocol})
				if err != nil {
					b.Fatal(err)
				}
				defer p.Close()
				calls := func(n int64) {
					var left atomic.Int64
					left.Store(n)
					var all sync.WaitGroup
					for range callers {
						all.Go(func() {
							for left.Add(-1) >= 0 {
								r, err := p.Invoke(b.Context(), request("echo", input), nil)
								if err != nil || r.Outcome != sdk.OutcomeResult {
									b.Error(r, err)
									return
								}
							}
						})
					}
					all.Wait()
				}
				calls(200)
				b.ReportAllocs()
				host, agent := hostCPU(b), agentCPU(b, p)
				b.ResetTimer()
				calls(int64(b.N))
				b.StopTimer()
				n := float64(b.N)
				b.ReportMetric(n/b.Elapsed().Seconds(), "calls/s")
				b.ReportMetric(float64(hostCPU(b)-host)/1e3/n, "host-µs/call")
				b.ReportMetric(float64(agentCPU(b, p)-agent)/1e3/n, "agent-µs/call")
			})
		}
	}
}

// hostCPU is the CPU time of this process.
func hostCPU(b *testing.B) time.Duration {
	var u syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &u); err != nil {
		b.Fatal(err)
	}
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}

// agentCPU is the CPU time of the agent's process.
func agentCPU(b *testing.B, p *Process) time.Duration {
	data, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", p.Pid()))
	if err != nil {
		b.Fatal(err)
	}
	_, rest, _ := strings.Cut(string(data), ") ")
	fields := strings.Fields(rest)
	user, err1 := strconv.ParseInt(fields[11], 10, 64)
	system, err2 := strconv.ParseInt(fields[12], 10, 64)
	if err1 != nil || err2 != nil {
		b.Fatal(err1, err2)
	}
	return time.Duration(user+system) * (time.Second / 100)
}
