package docs_test

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// Each test that the page about security names exists.
func TestSecurityNamesTests(t *testing.T) {
	page, err := os.ReadFile("security.md")
	if err != nil {
		t.Fatal(err)
	}
	named := regexp.MustCompile("`([a-z0-9_/-]+_test\\.go)#(Test[A-Za-z0-9]+)`").FindAllStringSubmatch(string(page), -1)
	if len(named) < 30 {
		t.Fatalf("the page names %d tests", len(named))
	}
	for _, m := range named {
		text, err := os.ReadFile(filepath.Join("..", filepath.FromSlash(m[1])))
		if err != nil || !strings.Contains(string(text), "func "+m[2]+"(") {
			t.Errorf("%s has no %s (%v)", m[1], m[2], err)
		}
	}
	if strings.Count(string(page), "_test.go#") != len(named) {
		t.Errorf("%d of %d names of tests can be read", len(named), strings.Count(string(page), "_test.go#"))
	}
}
