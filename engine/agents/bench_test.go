//go:build unix

package agents_test

import (
	"fmt"
	"path/filepath"
	"testing"
	"time"

	"github.com/saga-engine/engine/engine/agents"
	"github.com/saga-engine/engine/sdk"
)

func BenchmarkInvoke(b *testing.B) {
	catalog := agents.NewCatalog(agents.CatalogOptions{Search: agents.SearchOptions{PluginDirs: []string{filepath.Dir(mockBinary)}}})
	p := agents.NewPool(agents.Options{Catalog: catalog})
	defer p.Close()
	if err := p.Check(b.Context(), mock("m")); err != nil {
		b.Fatal(err)
	}
	for _, parallel := range []int{1, 32} {
		b.Run(fmt.Sprintf("parallel-%d", parallel), func(b *testing.B) {
			b.SetParallelism(parallel)
			b.RunParallel(func(pb *testing.PB) {
				for pb.Next() {
					c := call(mock("m"), "echo", `{"value":1}`)
					c.Request.CompleteBy = time.Now().Add(time.Minute)
					if reply, err := p.Invoke(b.Context(), c); err != nil || reply.Outcome != sdk.OutcomeResult {
						b.Errorf("%+v %v", reply, err)
					}
				}
			})
		})
	}
}
