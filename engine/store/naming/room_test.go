package naming

import (
	"strings"
	"testing"
	"time"
)

// The error about a limit names the part that is not valid.
func TestRoomNamesWhatIsNotValid(t *testing.T) {
	at := time.Unix(1, 0)
	for _, c := range []struct {
		room Room
		want string
	}{
		{Room{Workflow: "w", Key: "k", Limit: 1, Rank: at}, ""},
		{Room{Key: "k", Limit: 1, Rank: at}, "names no workflow"},
		{Room{Workflow: "w\x00", Key: "k", Limit: 1, Rank: at}, `the workflow name "w\x00"`},
		{Room{Workflow: "w", Limit: 0, Rank: at}, `the limit of workflow "w" is 0`},
		{Room{Workflow: "w", Limit: 1}, "has no rank"},
		{Room{Workflow: "w", Key: strings.Repeat("k", MaxKeyBytes+1), Limit: 1, Rank: at}, "more than the"},
		{Room{Workflow: "w", Key: "k\xff", Limit: 1, Rank: at}, `the key "k\xff"`},
	} {
		err := c.room.Validate()
		if c.want == "" && err != nil || c.want != "" && (err == nil || !strings.Contains(err.Error(), c.want)) {
			t.Errorf("%+v: err = %v, want %q", c.room, err, c.want)
		}
	}
}
