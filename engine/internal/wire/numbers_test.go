package wire

import (
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/saga-engine/engine/engine/internal/model"
)

// The numbers of fields and of events are persisted. Each is one named constant, which the
// tables of the codec have in this place, and docs/journal.md lists all of them.
func TestNumbersAreInOneTable(t *testing.T) {
	documented := documentedNumbers(t)
	for _, group := range []struct {
		title, file, first, prefix, suffix string
		bits                               []uint64 // of the codec, by number
	}{
		{"Fields of a run", "../model/field.go", "RunStateBit", "Run", "Bit", bitsOf(runCodec)},
		{"Fields of a node", "../model/field.go", "NodeStateBit", "Node", "Bit", bitsOf(nodeCodec)},
		{"Fields of an attempt", "../model/field.go", "AttemptStatusBit", "Attempt", "Bit", bitsOf(attemptCodec)},
		{"Kinds of events", "event.go", "kindStarted", "kind", "", nil},
	} {
		names := constants(t, group.file, group.first)
		var want []string
		for k, name := range names {
			number := k
			if group.bits == nil {
				number++ // kinds are counted from 1
			}
			short := strings.TrimSuffix(strings.TrimPrefix(name, group.prefix), group.suffix)
			want = append(want, fmt.Sprintf("%d %s", number, short))
		}
		if got := documented[group.title]; !slices.Equal(got, want) {
			t.Errorf("%s: docs/journal.md lists\n%s\nwant\n%s", group.title, strings.Join(got, "\n"), strings.Join(want, "\n"))
		}
		if group.bits != nil && len(group.bits) != len(names) {
			t.Errorf("%s: the codec has %d, and %d constants exist", group.title, len(group.bits), len(names))
		}
		for k, bit := range group.bits {
			if bit != 1<<k {
				t.Errorf("%s: number %d has the bit %b in the codec", group.title, k, bit)
			}
		}
	}
	if kindGroupStartedIDs != len(documented["Kinds of events"]) {
		t.Errorf("the last kind is %d of %d", kindGroupStartedIDs, len(documented["Kinds of events"]))
	}
	if model.NodeChildBit != 1<<(len(nodeCodec)-1) || model.RunBoundBit != 1<<(len(runCodec)-1) || model.AttemptGenBit != 1<<(len(attemptCodec)-1) {
		t.Error("the last constants are not those of the last fields")
	}
}

func bitsOf[T any](fields []codec[T]) (bits []uint64) {
	for _, f := range fields {
		bits = append(bits, f.bit)
	}
	return bits
}

// constants returns the names of the group of constants that begins with first.
func constants(t *testing.T, file, first string) (names []string) {
	t.Helper()
	f, err := parser.ParseFile(token.NewFileSet(), file, nil, 0)
	if err != nil {
		t.Fatal(err)
	}
	for _, d := range f.Decls {
		g, ok := d.(*ast.GenDecl)
		if !ok || g.Tok != token.CONST || g.Specs[0].(*ast.ValueSpec).Names[0].Name != first {
			continue
		}
		for _, s := range g.Specs {
			names = append(names, s.(*ast.ValueSpec).Names[0].Name)
		}
	}
	if len(names) == 0 {
		t.Fatalf("%s has no group of constants that begins with %s", file, first)
	}
	return names
}

// documentedNumbers reads the tables of docs/journal.md, by the title above each.
func documentedNumbers(t *testing.T) map[string][]string {
	t.Helper()
	page, err := os.ReadFile("../../../docs/journal.md")
	if err != nil {
		t.Fatal(err)
	}
	tables, title := map[string][]string{}, ""
	row := regexp.MustCompile(`^\| (\d+) \| (\w+) \|$`)
	for line := range strings.Lines(string(page)) {
		line = strings.TrimSuffix(line, "\n")
		if heading, ok := strings.CutPrefix(line, "## "); ok {
			title = heading
		}
		if m := row.FindStringSubmatch(line); m != nil {
			tables[title] = append(tables[title], m[1]+" "+m[2])
		}
	}
	return tables
}
