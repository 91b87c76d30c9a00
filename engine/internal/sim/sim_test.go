package sim

import (
	"fmt"
	"os"
	"strconv"
	"strings"
	"testing"
	"testing/synctest"
)

// S1, S3, S5, S6, S19, S21, S22, S30, S45, S49, S87 and I1, I2, I4 to I8, I10:
// engines that crash, freeze and lose messages, over a far side that fails in
// every way it can, leave every run ended, or in the hands of a person, with
// the effects its end promises.
func TestSeeds(t *testing.T) {
	first, count := uint64(1), uint64(100)
	if testing.Short() {
		count = 20
	}
	if s := os.Getenv("SIM_SEEDS"); s != "" {
		n, err := strconv.ParseUint(s, 10, 64)
		if err != nil {
			t.Fatalf("SIM_SEEDS: %v", err)
		}
		count = n
	}
	if s := os.Getenv("SIM_SEED"); s != "" {
		n, err := strconv.ParseUint(s, 10, 64)
		if err != nil {
			t.Fatalf("SIM_SEED: %v", err)
		}
		first, count = n, 1
	}
	for seed := first; seed < first+count; seed++ {
		ok := t.Run(fmt.Sprintf("seed %d", seed), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				faults, story, err := Simulate(t.Context(), seed)
				if err != nil {
					t.Fatalf("%v\n%s", err, strings.Join(story, "\n"))
				}
				if len(faults) > 0 {
					t.Errorf("%s\nagain: SIM_SEED=%d go test ./engine/internal/sim\n%s", strings.Join(faults, "\n"), seed, strings.Join(story, "\n"))
				}
			})
		})
		if !ok {
			return // one story is enough to read
		}
	}
}
