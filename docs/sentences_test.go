package docs_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// TestSentencesNameTests: each row of docs/sentences.md names tests, scripts or golden files that
// exist.
func TestSentencesNameTests(t *testing.T) {
	text, err := os.ReadFile("sentences.md")
	if err != nil {
		t.Fatal(err)
	}
	rows, refs := 0, 0
	for line := range strings.Lines(string(text)) {
		cells := strings.Split(strings.Trim(strings.TrimSpace(line), "|"), " | ")
		if !strings.HasPrefix(line, "| ") || strings.HasPrefix(line, "| Rule ") {
			continue
		}
		rows++
		if len(cells) != 2 {
			t.Errorf("%d cells, want 2: %s", len(cells), line)
			continue
		}
		named := reference.FindAllStringSubmatch(cells[1], -1)
		if len(named) == 0 {
			t.Errorf("no test: %s", line)
		}
		for _, m := range named {
			refs++
			path := filepath.Join("..", filepath.FromSlash(m[1]))
			if err := there(path, m[2]); err != nil {
				t.Errorf("%s: %v", m[0], err)
			}
		}
	}
	if rows < 60 || refs < 120 {
		t.Errorf("%d rows with %d tests: the table was not read", rows, refs)
	}
}

// there reports an error if the file does not exist, or has no test function with this name.
func there(path, name string) error {
	text, err := os.ReadFile(path)
	if err != nil {
		return err
	}
	return must(name == "" || strings.Contains(string(text), "func "+name+"("), "there is no such test")
}
