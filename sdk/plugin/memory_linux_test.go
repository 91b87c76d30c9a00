package plugin

import (
	"fmt"
	"os"
	"strconv"
	"strings"
	"testing"
)

// Where memory runs out the kernel ends an agent before its engine (T12).
func TestAgentGoesBeforeItsEngine(t *testing.T) {
	score := func(process string) int {
		t.Helper()
		text, err := os.ReadFile(fmt.Sprintf("/proc/%s/oom_score_adj", process))
		if err != nil {
			t.Fatal(err)
		}
		n, err := strconv.Atoi(strings.TrimSpace(string(text)))
		if err != nil {
			t.Fatal(err)
		}
		return n
	}
	p := open(t, OpenOptions{})
	if agent, engine := score(strconv.Itoa(p.Pid())), score("self"); agent <= engine && engine < 1000 {
		t.Errorf("the score of the agent is %d, that of the engine %d: want the agent's above", agent, engine)
	}
}
