package docs_test

import (
	"cmp"
	"go/ast"
	"go/token"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
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
	words, _, _ := strings.Cut(string(text), "## Words that are not used")
	for line := range strings.Lines(words) {
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

// vague are words in place of which comments and texts have to name a person, a thing or
// an event.
var vague = regexp.MustCompile(`(?i)\b(whoever|somebody|anybody|gets on|by and by|befalls?|misfortunes?|that which|in the midst|mint(?:s|ed)?|fenced off|goes by|by turns|as ever|gets nowhere)\b`)

// vagueComment are more such words, and openings of comments that name no thing. Texts for users
// may have them: some older texts do.
var vagueComment = regexp.MustCompile(`\b(?i:nobody|by itself|is told|stands for)\b|\bbeside\b|^(What|That|Those of)\b`)

// vagueComment finds openings only at the beginning of a comment, and words everywhere.
func TestVagueComments(t *testing.T) {
	for text, want := range map[string]string{
		"Nobody waits.": "Nobody", "It stops by itself.": "by itself", "What a run needs.": "What", "Those of the others.": "Those of",
		"The run is told.": "is told", "It lies beside the file.": "beside", "Options.Beside opens the file.": "", "Whatever it is.": "", "It says what happened.": "",
	} {
		if got := vagueComment.FindString(text); got != want {
			t.Errorf("%q: found %q, want %q", text, got, want)
		}
	}
}

// Comments, and texts for users, say who does something.
func TestCommentsNameWhoActs(t *testing.T) {
	eachFile(t, func(file string, fset *token.FileSet, f *ast.File) {
		for _, group := range f.Comments {
			if word := cmp.Or(vague.FindString(group.Text()), vagueComment.FindString(group.Text())); word != "" {
				t.Errorf("%s: a comment says %q: say who it is (docs/glossary.md)", fset.Position(group.Pos()), word)
			}
		}
		ast.Inspect(f, func(n ast.Node) bool {
			if text, ok := n.(*ast.BasicLit); ok && text.Kind == token.STRING {
				if word := vague.FindString(text.Value); word != "" {
					t.Errorf("%s: a text says %q: say who it is (docs/glossary.md)", fset.Position(text.Pos()), word)
				}
			}
			return true
		})
	})
}

// Pages say who does something, too.
func TestPagesNameWhoActs(t *testing.T) {
	pages := 0
	err := filepath.WalkDir("..", func(file string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() || filepath.Ext(file) != ".md" || filepath.Base(file) == "glossary.md" {
			return err
		}
		pages++
		text, err := os.ReadFile(file)
		for i, line := range strings.Split(string(text), "\n") {
			if word := vague.FindString(line); word != "" {
				t.Errorf("%s:%d: says %q: say who it is (docs/glossary.md)", file, i+1, word)
			}
		}
		return err
	})
	if err != nil || pages < 30 {
		t.Errorf("%d pages, %v", pages, err)
	}
}

// Each page begins with its readers and with the questions that it answers.
func TestPagesSayWhoTheyAreFor(t *testing.T) {
	pages, err := filepath.Glob("*.md")
	if err != nil || len(pages) < 12 {
		t.Fatalf("%d pages, %v", len(pages), err)
	}
	for _, page := range pages {
		text, err := os.ReadFile(page)
		if err != nil {
			t.Fatal(err)
		}
		lines := strings.SplitN(string(text), "\n", 4)
		if len(lines) < 4 || !strings.HasPrefix(lines[2], "For ") || !strings.Contains(lines[2], "This page ") {
			t.Errorf("%s: its first paragraph does not say for whom it is (\"For …\") and what it answers (\"This page …\")", page)
		}
	}
}

// The page for embedders names Examples that exist.
func TestEmbeddingNamesExamples(t *testing.T) {
	page, err := os.ReadFile("embed.md")
	if err != nil {
		t.Fatal(err)
	}
	code, err := os.ReadFile("../engine/example_test.go")
	if err != nil {
		t.Fatal(err)
	}
	examples := regexp.MustCompile("`(Example\\w*)`").FindAllStringSubmatch(string(page), -1)
	if len(examples) < 3 {
		t.Errorf("%d examples are named", len(examples))
	}
	for _, m := range examples {
		if !strings.Contains(string(code), "func "+m[1]+"()") {
			t.Errorf("embed.md names %s, which does not exist", m[1])
		}
	}
}

// README, CONTRIBUTING and the documentation of package engine name the same files for
// those who begin to read, and the files exist.
func TestReadingOrder(t *testing.T) {
	entry := regexp.MustCompile(`(?m)^(?://  )?\d\. \[?([\w./-]+\.(?:go|hcl))`)
	var orders []string
	for _, file := range []string{"../README.md", "../CONTRIBUTING.md", "../engine/doc.go"} {
		text, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		var files []string
		for _, m := range entry.FindAllStringSubmatch(string(text), -1) {
			files = append(files, m[1])
			if _, err := os.Stat("../" + m[1]); err != nil {
				t.Errorf("%s: %v", file, err)
			}
		}
		orders = append(orders, strings.Join(files, " "))
	}
	if len(strings.Fields(orders[0])) != 8 || orders[1] != orders[0] || orders[2] != orders[0] {
		t.Errorf("the reading orders differ, or are not of eight files:\n%s", strings.Join(orders, "\n"))
	}
}
