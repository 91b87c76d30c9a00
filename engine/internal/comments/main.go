// Command comments prints random comments of the code. A reader then judges whether each
// comment is clear at first reading. `make comments` runs it.
package main

import (
	"flag"
	"fmt"
	"go/parser"
	"go/token"
	"io/fs"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
)

func main() {
	n := flag.Int("n", 200, "how many comments")
	seed := flag.Uint64("seed", 1, "another seed draws other comments")
	flag.Parse()
	all, err := comments(".")
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	rand.New(rand.NewPCG(*seed, 0)).Shuffle(len(all), func(i, j int) { all[i], all[j] = all[j], all[i] })
	fmt.Printf("%d of %d comments, seed %d\n\n", min(*n, len(all)), len(all), *seed)
	for i, c := range all[:min(*n, len(all))] {
		fmt.Printf("%d. %s\n%s\n", i+1, c.position, c.text)
	}
}

// A comment is one comment of the code, with some of the lines before and after it. A reader of the
// code sees these lines, too, and they may show what a word such as "it" refers to. The lines of
// the comment itself begin with ">".
type comment struct{ position, text string }

// Numbers of lines that are printed before and after a comment.
const before, after = 6, 7

// comments collects the comments of every file that is neither a test nor generated.
func comments(root string) (all []comment, err error) {
	err = filepath.WalkDir(root, func(file string, d fs.DirEntry, err error) error {
		switch {
		case err != nil:
			return err
		case d.IsDir() && (d.Name() == "testdata" || d.Name() != "." && strings.HasPrefix(d.Name(), ".")):
			return fs.SkipDir
		case d.IsDir() || filepath.Ext(file) != ".go" || strings.HasSuffix(file, "_test.go") || strings.HasSuffix(file, ".pb.go"):
			return nil
		}
		source, err := os.ReadFile(file)
		if err != nil {
			return err
		}
		fset := token.NewFileSet()
		f, err := parser.ParseFile(fset, file, source, parser.ParseComments)
		if err != nil {
			return err
		}
		lines := strings.Split(string(source), "\n")
		for _, group := range f.Comments {
			if strings.TrimSpace(group.Text()) == "" {
				continue // the group holds only a directive, such as //go:build
			}
			first, last := fset.Position(group.Pos()), fset.Position(group.End())
			var text strings.Builder
			for i := max(first.Line-1-before, 0); i < min(last.Line+after, len(lines)); i++ {
				mark := ' '
				if i >= first.Line-1 && i < last.Line {
					mark = '>'
				}
				fmt.Fprintf(&text, "%c %s\n", mark, lines[i])
			}
			all = append(all, comment{fmt.Sprintf("%s:%d", file, first.Line), text.String()})
		}
		return nil
	})
	return all, err
}
