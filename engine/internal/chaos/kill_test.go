package chaos

import (
	"fmt"
	"hash/fnv"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"
)

// T1: kill -9 at each durable transition and around every call, with one fixed
// workflow alone and beside one or two random ones; another engine finishes
// everything, and the far side agrees (S3 S9 S19 S22 S30 S46 S49 S58,
// I1 to I10).
func TestKillAtEveryPoint(t *testing.T) {
	t.Parallel()
	killEverywhere(t, "T1 kill -9 at every place", times(1, 34), listed(t), func(t *testing.T, seed uint64) *World { return newWorld(t, seed) })
}

// T1 on the embedded store: the process that held the file has died, and the next process
// goes on at once (S19 S22 S46 S49, I1 to I10).
func TestKillAtEveryPointEmbedded(t *testing.T) {
	t.Parallel()
	var points []string
	for _, p := range listed(t) {
		switch {
		case strings.HasPrefix(p, "store.Fence"): // opening the file fences the engine that held it
		case strings.HasPrefix(p, "store.KeepLate"): // takes two engines at once
		case strings.HasPrefix(p, "select."), strings.HasPrefix(p, "intake."), p == "event.fired": // an embedded state has no business tables and no SQL of other programs
		default:
			points = append(points, p)
		}
	}
	killEverywhere(t, "T1 on the embedded store", times(1, 10), points, func(t *testing.T, seed uint64) *World { return NewEmbeddedWorld(t, programs, seed) })
}

func killEverywhere(t *testing.T, name string, seeds int, points []string, world func(*testing.T, uint64) *World) {
	began := time.Now()
	var mu sync.Mutex
	var sum Verdict
	rounds := 0
	t.Run("points", func(t *testing.T) {
		for _, point := range points {
			if !full && !chosen(name, point) {
				continue
			}
			s := sceneOf(point)
			for seed := range seeds {
				t.Run(fmt.Sprintf("%s/%d", strings.ReplaceAll(point, "/", ":"), seed), func(t *testing.T) {
					t.Parallel()
					w := world(t, uint64(seed))
					s.play(t, w, point)
					v := w.Judge()
					mu.Lock()
					defer mu.Unlock()
					sum.add(v)
					rounds++
				})
			}
		}
	})
	report.count(name, rounds, sum, began)
}

// chosen picks the places for the short test: one side of each sixth pair of places. The
// tests of the two stores choose differently.
func chosen(test, point string) bool {
	pair := strings.Replace(strings.Replace(point, ".before", "", 1), ".after", "", 1)
	n := hashOf(test + pair)
	return n%6 == 0 && (n/6%2 == 0) == strings.Contains(point, ".before")
}

func hashOf(text string) uint32 {
	h := fnv.New32a()
	h.Write([]byte(text))
	return h.Sum32()
}

// listed returns the names of all places.
func listed(t *testing.T) []string {
	t.Helper()
	data, err := os.ReadFile(filepath.Join("..", "failpoint", "points.txt"))
	if err != nil {
		t.Fatal(err)
	}
	return strings.Fields(string(data))
}
