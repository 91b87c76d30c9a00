package memory

import (
	"testing"

	"github.com/saga-engine/engine/engine/store/storetest"
)

func BenchmarkCommit(b *testing.B) { storetest.Bench(b, New(Options{})) }

func BenchmarkLoad(b *testing.B) { storetest.BenchLoad(b, New(Options{})) }

func BenchmarkOrphans(b *testing.B) { storetest.BenchOrphans(b, New(Options{})) }

func BenchmarkTick(b *testing.B) { storetest.BenchTick(b, New(Options{}), 200_000) }
