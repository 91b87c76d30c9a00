package naming

import (
	"crypto/rand"
	"encoding/binary"
	"fmt"
	"sync"
	"time"

	"github.com/saga-engine/engine/engine/machine/status"
)

// runIDEpoch is the time 0 of run ids: the time in a run id is the number of milliseconds from
// runIDEpoch to the submission of the run.
var runIDEpoch = time.Date(2020, 1, 1, 0, 0, 0, 0, time.UTC)

// runIDRandomBits is how many low bits of a run id are random. The other 41 bits contain
// the time of submission, in milliseconds since runIDEpoch. 41 bits are enough for 69
// years.
const runIDRandomBits = 22

// FirstRunOf returns the lowest id that a run can have if it was submitted in the millisecond of
// the time t. All runs that were submitted before this millisecond have lower ids, unless the
// clock of their engine was set back (RunIDSource.Next).
func FirstRunOf(t time.Time) status.RunID {
	return status.RunID(max(0, t.Sub(runIDEpoch).Milliseconds()) << runIDRandomBits)
}

// TimeOfRun returns the time at which a run with this id was submitted, in whole
// milliseconds.
func TimeOfRun(id status.RunID) time.Time {
	return runIDEpoch.Add(time.Duration(id>>runIDRandomBits) * time.Millisecond)
}

// A RunIDSource makes run ids. Each id of a source is greater than all earlier ids of the
// source. Ids of different engines are ordered by the time of submission, in milliseconds. The
// zero value is ready to use. A RunIDSource is safe for concurrent use.
type RunIDSource struct {
	mu   sync.Mutex // protects the field below
	last status.RunID
}

// Next returns a new id for a run. The parameter `now` is the time of its submission. The id
// is greater than all ids that this source has returned before, even if the clock was set
// back.
func (s *RunIDSource) Next(now time.Time) (status.RunID, error) {
	var b [4]byte
	if _, err := rand.Read(b[:]); err != nil {
		return 0, fmt.Errorf("make a run id: %w", err)
	}
	low := status.RunID(binary.BigEndian.Uint32(b[:]) & (1<<runIDRandomBits - 1))
	id := FirstRunOf(now) | low
	s.mu.Lock()
	defer s.mu.Unlock()
	if id <= s.last {
		id = s.last + 1
	}
	s.last = id
	return id, nil
}
