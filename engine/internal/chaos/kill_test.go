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

// T1: kill -9 at each durable transition and around every call; another engine
// finishes everything, and the far side agrees (S3 S9 S19 S22 S30 S46 S49 S58,
// I1 to I10).
func TestKillAtEveryPoint(t *testing.T) {
	points := listed(t)
	began := time.Now()
	var mu sync.Mutex
	var sum Verdict
	rounds := 0
	t.Run("points", func(t *testing.T) {
		for _, point := range points {
			if !full && !chosen(point) {
				continue
			}
			s := sceneOf(point)
			if s == nil {
				t.Errorf("no scene makes an engine pass %s", point)
				continue
			}
			for seed := range times(1, 25) {
				t.Run(fmt.Sprintf("%s/%d", strings.ReplaceAll(point, "/", ":"), seed), func(t *testing.T) {
					t.Parallel()
					w := newWorld(t, uint64(seed))
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
	report.count("T1 kill -9 at every place", rounds, sum, began)
}

// chosen picks one side of each pair of places for the short test.
func chosen(point string) bool {
	pair := strings.Replace(strings.Replace(point, ".before", "", 1), ".after", "", 1)
	h := fnv.New32a()
	h.Write([]byte(pair))
	return (h.Sum32()%2 == 0) == strings.Contains(point, ".before")
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
