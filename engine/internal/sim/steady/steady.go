// Package steady builds test binaries in which a seed determines the order in which goroutines run.
// Go leaves four things to chance: which goroutine runs next; which ready case a select takes;
// which of two timers with the same time fires first; and random numbers, which determine the order
// of maps. For one build, Overlay replaces the lines of the runtime's source that decide these
// things. The new lines use a generator that a test can seed. Overlay also removes the thread that
// takes the processor from a goroutine after a time slice. The test needs one processor
// (GOMAXPROCS=1), no garbage collection while a seed runs, and time that passes only in a
// testing/synctest bubble. Then a seed determines the whole execution of a program, including every
// interleaving.
//
// Use such a binary only for simulations.
package steady

import (
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
)

// An edit replaces one text in a source file of the Go runtime. The field `old` is the old text,
// which the file must contain exactly once. The field `new` is the new text.
type edit struct{ file, old, new string }

var edits = []edit{
	{"proc.go", `const haveSysmon = GOARCH != "wasm"`, `const haveSysmon = false`},
	{"proc.go", `if !haveSysmon && next {`, `if next && steadyRand()&1 == 0 {`},
	{"select.go", `cheaprandn(uint32(norder + 1))`, `uint32(steadyRand()>>32) % uint32(norder+1)`},
	{"time.go", `t.rand = cheaprand()`, `t.rand = uint32(steadyRand() >> 32)`},
	{"rand.go", "if len(startupRand) >= 16 &&\n", "if seed[0] = 1; false &&\n"},
	{"rand.go", `if readRandom(seed[:]) != len(seed) || allZero(seed[:]) {`, `if false {`},
	{"rand.go", "\tmp := getg().m\n\tc := &mp.chacha8\n", "\tif true {\n\t\treturn steadyRand()\n\t}\n\tmp := getg().m\n\tc := &mp.chacha8\n"},
}

// generator is the source text of the generator of random numbers, which Overlay adds to the
// runtime. A test sets the seed with
//
//	//go:linkname reseed runtime.steadyReseed
//	func reseed(seed uint64)
const generator = `package runtime

import _ "unsafe"

var steadyState uint64

//go:nosplit
func steadyRand() uint64 {
	steadyState += 0x9e3779b97f4a7c15
	z := steadyState
	z = (z ^ z>>30) * 0xbf58476d1ce4e5b9
	z = (z ^ z>>27) * 0x94d049bb133111eb
	return z ^ z>>31
}

//go:linkname steadyReseed
func steadyReseed(seed uint64) {
	steadyState = seed
	getg().m.p.ptr().schedtick = 0
}
`

// Tag is the build tag of the Go files that seed the generator of random numbers.
const Tag = "steady"

// Overlay writes the changed source files into dir. It returns the path of the file to pass to go
// build -overlay. The parameter `more` holds further replacements of source files, as a map from
// the original path to the path of the replacement; nil = none. Overlay returns an error if the
// source of the Go runtime does not contain the pieces to replace.
func Overlay(dir string, more map[string]string) (string, error) {
	root, err := exec.Command("go", "env", "GOROOT").Output()
	if err != nil {
		return "", fmt.Errorf("find the runtime's source: %w", err)
	}
	src := filepath.Join(strings.TrimSpace(string(root)), "src", "runtime")
	replace := map[string]string{}
	for path, by := range more {
		replace[path] = by
	}
	texts := map[string]string{"steady.go": generator}
	for _, e := range edits {
		text, ok := texts[e.file]
		if !ok {
			data, err := os.ReadFile(filepath.Join(src, e.file))
			if err != nil {
				return "", fmt.Errorf("read the runtime's source: %w", err)
			}
			text = string(data)
		}
		if n := strings.Count(text, e.old); n != 1 {
			return "", fmt.Errorf("runtime/%s of %s is not known: %q occurs %d times", e.file, runtime.Version(), e.old, n)
		}
		texts[e.file] = strings.Replace(text, e.old, e.new, 1)
	}
	for file, text := range texts {
		to := filepath.Join(dir, "runtime_"+file)
		if err := os.WriteFile(to, []byte(text), 0o644); err != nil {
			return "", err
		}
		replace[filepath.Join(src, file)] = to
	}
	data, err := json.Marshal(map[string]map[string]string{"Replace": replace})
	if err != nil {
		return "", err
	}
	file := filepath.Join(dir, "overlay.json")
	return file, os.WriteFile(file, data, 0o644)
}
