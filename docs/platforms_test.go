package docs_test

import (
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// README names the platforms that `make lint` builds for, no more and no fewer.
func TestPlatforms(t *testing.T) {
	read := func(path string) string {
		text, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		return string(text)
	}
	built := regexp.MustCompile(`(?m)^PLATFORMS := (.*)$`).FindStringSubmatch(read("../Makefile"))
	if built == nil {
		t.Fatal("the Makefile has no PLATFORMS")
	}
	_, section, _ := strings.Cut(read("../README.md"), "\n## Platforms\n")
	section, _, _ = strings.Cut(section, "\n## ")
	var named []string
	for _, row := range regexp.MustCompile("(?m)^\\| `([a-z0-9]+)` \\|").FindAllStringSubmatch(section, -1) {
		named = append(named, row[1])
	}
	if !slices.Equal(named, strings.Fields(built[1])) {
		t.Errorf("README names %q, make lint builds for %q", named, built[1])
	}
}
