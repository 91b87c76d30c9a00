package docs_test

import (
	"os"
	"strings"
	"testing"
)

// The glossary defines each word once, and says of each what it is, where it shows and
// what it is not.
func TestGlossary(t *testing.T) {
	text, err := os.ReadFile("glossary.md")
	if err != nil {
		t.Fatal(err)
	}
	seen := map[string]bool{}
	for line := range strings.Lines(string(text)) {
		line = strings.TrimSpace(line)
		if !strings.HasPrefix(line, "| ") || strings.HasPrefix(line, "| Word |") {
			continue
		}
		cells := strings.Split(strings.Trim(line, "| "), " | ")
		if len(cells) != 4 {
			t.Errorf("%d cells, want 4: %s", len(cells), line)
			continue
		}
		for _, word := range strings.Split(cells[0], ", ") {
			if seen[word] {
				t.Errorf("%q is defined twice", word)
			}
			seen[word] = true
		}
		if !strings.HasSuffix(cells[1], ".") {
			t.Errorf("%s: what it is, is no sentence: %s", cells[0], cells[1])
		}
	}
	if len(seen) < 40 {
		t.Errorf("the glossary defines %d words", len(seen))
	}
}
