package examples_test

import (
	"regexp"
	"testing"
)

// S19, S54, S56, S60, S66, S67: the worked example of the pattern. An application submits runs in its own
// transactions and gets replies in its own queue. An engine is killed, and a run waits for an operator. The
// demo itself checks each step, and fails if one is not as it should be.
func TestOrderProcessing(t *testing.T) {
	t.Parallel()
	r := runCommand(t, "demo", "--bin", bin, "--module", "order-processing", "--dsn", postgresDSN(t))
	if r.code != 0 {
		t.Fatalf("demo = %d\n%s%s", r.code, r.stdout, r.stderr)
	}
	for _, want := range []string{
		`(?m)^o-1 +mug +3400 +DE +order/o-1 +succeeded +accepted started succeeded$`,
		`(?m)^o-3 +mug +900 +DE +order/o-3 +succeeded +accepted started parked (started )?succeeded$`,
		`(?m)^o-4 +mug +500 +AQ +order/o-4 +compensated +accepted started compensated$`,
		`(?m)^o-4: wholly undone`,
	} {
		if !regexp.MustCompile(want).MatchString(r.stdout) {
			t.Errorf("no %s in\n%s", want, r.stdout)
		}
	}
}
