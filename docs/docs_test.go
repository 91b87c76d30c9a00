package docs_test

import (
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// texts returns the text of the repository's files with one of the endings, by
// path. What git and tools keep for themselves is left out.
func texts(t *testing.T, endings ...string) map[string]string {
	t.Helper()
	found := map[string]string{}
	err := filepath.WalkDir("..", func(path string, d fs.DirEntry, err error) error {
		switch {
		case err != nil:
			return err
		case d.IsDir() && path != ".." && (strings.HasPrefix(d.Name(), ".") || d.Name() == "bin"):
			return fs.SkipDir
		case d.IsDir() || !slices.Contains(endings, filepath.Ext(path)):
			return nil
		}
		text, err := os.ReadFile(path)
		found[path] = string(text)
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return found
}

// Decisions are numbered without a gap, none twice, each is in the list, and
// whatever mentions one mentions one that exists.
func TestDecisions(t *testing.T) {
	files, err := filepath.Glob("decisions/[0-9]*.md")
	if err != nil || len(files) == 0 {
		t.Fatalf("%d decisions, %v", len(files), err)
	}
	list, err := os.ReadFile("decisions/README.md")
	if err != nil {
		t.Fatal(err)
	}
	numbers := map[string]bool{}
	for i, file := range files {
		name := filepath.Base(file)
		if !strings.HasPrefix(name, fmt.Sprintf("%04d-", i+1)) {
			t.Errorf("%s stands where decision %d should", name, i+1)
		}
		numbers[name[:4]], numbers[fmt.Sprint(i+1)] = true, true
		text, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		title := strings.TrimPrefix(strings.SplitN(string(text), "\n", 2)[0], "# ")
		if number, rest, ok := strings.Cut(title, ". "); !ok || number != fmt.Sprint(i+1) ||
			!strings.Contains(string(list), fmt.Sprintf("%d. [%s](%s)", i+1, rest, name)) {
			t.Errorf("%s is called %q: want its number, and the same in decisions/README.md", name, title)
		}
	}
	mention := regexp.MustCompile(`decisions/(\d{4})|\b[Dd]ecision (\d+)\b`)
	for path, text := range texts(t, ".md", ".go") {
		for _, m := range mention.FindAllStringSubmatch(text, -1) {
			if number := m[1] + m[2]; !numbers[number] && !strings.HasSuffix(path, "docs_test.go") {
				t.Errorf("%s mentions decision %s, which does not exist", path, number)
			}
		}
	}
}

// Links from one text to another lead somewhere.
func TestLinks(t *testing.T) {
	link := regexp.MustCompile(`\]\(([^)#:]+)(?:#[^)]*)?\)`)
	seen := 0
	for path, text := range texts(t, ".md") {
		for _, m := range link.FindAllStringSubmatch(text, -1) {
			seen++
			if _, err := os.Stat(filepath.Join(filepath.Dir(path), filepath.FromSlash(m[1]))); err != nil {
				t.Errorf("%s links to %s, which does not exist", path, m[1])
			}
		}
	}
	if seen < 20 {
		t.Errorf("only %d links found", seen)
	}
}

// Every command is in docs/cli.md, and every one there exists.
func TestCommandsAreListed(t *testing.T) {
	use := regexp.MustCompile(`(?m)^\s*Use:\s+"([a-z]+)`)
	commands := []string{"completion"} // cobra's own
	for path, text := range texts(t, ".go") {
		if !strings.HasPrefix(filepath.ToSlash(path), "../cmd/engine/") || strings.HasSuffix(path, "_test.go") {
			continue
		}
		for _, m := range use.FindAllStringSubmatch(text, -1) {
			if m[1] != "engine" {
				commands = append(commands, m[1])
			}
		}
	}
	if len(commands) < 20 {
		t.Fatalf("only %v found", commands)
	}
	text, err := os.ReadFile("cli.md")
	if err != nil {
		t.Fatal(err)
	}
	table, _, _ := strings.Cut(string(text), "\n## ")
	var listed []string
	for line := range strings.Lines(table) {
		if cell, _, ok := strings.Cut(strings.TrimPrefix(line, "| "), " | "); ok && strings.HasPrefix(line, "| `") {
			for _, m := range regexp.MustCompile("`([a-z]+)(?: ([a-z]+)\\b)?").FindAllStringSubmatch(cell, -1) {
				listed = append(listed, m[1])
				if m[2] != "" { // a command of a command
					listed = append(listed, m[2])
				}
			}
		}
	}
	for _, c := range commands {
		if !slices.Contains(listed, c) {
			t.Errorf("docs/cli.md does not list %s", c)
		}
	}
	for _, c := range listed {
		if !slices.Contains(commands, c) {
			t.Errorf("docs/cli.md lists %s, which does not exist", c)
		}
	}
}

// TestPlaces: each name in the table "Where things happen" of CONTRIBUTING is in one of the
// files of its row.
func TestPlaces(t *testing.T) {
	data, err := os.ReadFile("../CONTRIBUTING.md")
	if err != nil {
		t.Fatal(err)
	}
	_, table, ok := strings.Cut(string(data), "## Where things happen\n")
	if !ok {
		t.Fatal("CONTRIBUTING has no such table")
	}
	table, _, _ = strings.Cut(table, "\n## ")
	link, name := regexp.MustCompile(`\]\(([^)]+)\)`), regexp.MustCompile("`([^`]+)`")
	rows := 0
	for row := range strings.Lines(table) {
		cells := strings.Split(row, "|")
		if len(cells) != 5 || !strings.Contains(cells[2], "](") {
			continue
		}
		rows++
		var text strings.Builder
		for _, m := range link.FindAllStringSubmatch(cells[2], -1) {
			files := []string{filepath.Join("..", m[1])}
			if info, err := os.Stat(files[0]); err == nil && info.IsDir() {
				if files, err = filepath.Glob(filepath.Join(files[0], "*.go")); err != nil {
					t.Fatal(err)
				}
			}
			for _, file := range files {
				data, err := os.ReadFile(file)
				if err != nil {
					t.Error(err)
				}
				text.Write(data)
			}
		}
		for _, m := range name.FindAllStringSubmatch(cells[3], -1) {
			if !regexp.MustCompile(`\b` + regexp.QuoteMeta(m[1]) + `\b`).MatchString(text.String()) {
				t.Errorf("%s: no %s there", strings.TrimSpace(cells[2]), m[1])
			}
		}
	}
	if rows < 30 {
		t.Errorf("%d rows were found, want the whole table", rows)
	}
}
