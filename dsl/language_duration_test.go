package dsl_test

import (
	"maps"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// spanNames are the names of arguments that hold a duration, or a deadline.
var spanNames = regexp.MustCompile(`^(timeout|deadline|.*_timeout|.*_interval|window|cool_down|duration)$`)

// TestDurationsWithDays: each argument that holds a duration accepts days, alone and with other
// units, and refuses weeks, signs and numbers.
func TestDurationsWithDays(t *testing.T) {
	rows := append(blocks(), blockRule{
		name: "timer", file: workflow("step \"s\" {\ntimer {\n%s\n}\n}\n" + step("a", "")), args: map[string]string{"duration": `"1s"`},
	})
	seen := map[string]bool{}
	for _, b := range rows {
		for _, name := range slices.Sorted(maps.Keys(b.args)) {
			if !spanNames.MatchString(name) {
				continue
			}
			seen[name] = true
			try := func(value string) (string, bool) {
				_, diags := check(files{"main.hcl": b.body(name+" = "+value+"\n", name)})
				got := about(diags, "Invalid value for "+name)
				if len(got) == 0 {
					return "", true
				}
				return got[0].Detail, false
			}
			for _, value := range []string{`"2d"`, `"1d12h"`, `"1d1h1m1s"`, `"0.5d"`, `"90s"`} {
				if detail, ok := try(value); !ok {
					t.Errorf("%s: %s = %s is refused: %s", b.name, name, value, detail)
				}
			}
			for _, value := range []string{`"2w"`, `"-1d"`, `"1d 12h"`, `"d"`, "86400"} {
				if detail, ok := try(value); ok || !strings.Contains(detail, noDuration) && !strings.Contains(detail, noDeadline) {
					t.Errorf("%s: %s = %s: accepted %t, %q", b.name, name, value, ok, detail)
				}
			}
		}
	}
	for _, name := range []string{"timeout", "deadline", "heartbeat_timeout", "initial_interval", "max_interval", "cool_down", "window", "duration"} {
		if !seen[name] {
			t.Errorf("no argument named %s was tried", name)
		}
	}
}
