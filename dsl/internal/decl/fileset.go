package decl

import (
	"errors"
	"fmt"
	"io/fs"
	"path"
	"strings"

	"github.com/saga-engine/engine/dsl/internal/sorted"
)

// Limits of fileset(). A pattern with ** could visit a whole disk.
const (
	maxVisits   = 100_000 // largest number of directory entries that are compared with the pattern
	maxMatches  = 10_000  // largest number of files that match
	maxVariants = 100     // largest number of patterns without braces that braces() may make from one pattern
)

// matchFiles returns the files below a directory that match a pattern, sorted, as paths
// relative to this directory. It leaves out directories and the files in .engine. It follows a
// symbolic link only if the link leads to a file inside the module.
func matchFiles(fsys fs.FS, dir, pattern string) ([]string, error) {
	info, err := fs.Stat(fsys, dir)
	if err != nil {
		return nil, err
	}
	if !info.IsDir() {
		return nil, fmt.Errorf("%s is not a directory", dir)
	}
	variants, err := braces(pattern)
	if err != nil {
		return nil, err
	}
	m := &matcher{fsys: fsys, root: dir, found: map[string]bool{}}
	for _, v := range variants {
		parts := strings.Split(v, "/")
		for _, part := range parts {
			if part == "" || part == "." || part == ".." {
				return nil, errors.New("the pattern must be relative and stay inside the directory, with one / between its parts")
			}
			if _, err := path.Match(part, ""); err != nil {
				return nil, errors.New("the pattern may hold *, **, ?, [a-z] and {a,b}, each bracket with its end")
			}
		}
		if err := m.match(".", parts); err != nil {
			return nil, err
		}
	}
	return sorted.Keys(m.found), nil
}

// braces replaces a pattern with braces by patterns without braces, which match the same files: for
// a{b,c} it returns ab and ac.
func braces(pattern string) ([]string, error) {
	out := []string{""}
	for rest := pattern; rest != ""; {
		before, after, found := strings.Cut(rest, "{")
		choices := []string{""}
		rest = ""
		if found {
			inner, end, closed := strings.Cut(after, "}")
			if !closed || strings.Contains(inner, "{") {
				return nil, errors.New("the pattern has a { without its }, or braces in braces")
			}
			choices, rest = strings.Split(inner, ","), end
		}
		var next []string
		for _, prefix := range out {
			for _, c := range choices {
				next = append(next, prefix+before+c)
			}
		}
		if out = next; len(out) > maxVariants {
			return nil, fmt.Errorf("the braces of a pattern may expand to at most %d patterns", maxVariants)
		}
	}
	return out, nil
}

// A matcher finds the files below the directory root that match a pattern.
type matcher struct {
	fsys   fs.FS
	root   string
	visits int
	found  map[string]bool
}

// match adds to m.found the files below a directory that match a pattern. The parameter `dir` is
// the path of the directory, relative to m.root. The parameter `parts` holds the parts of the
// pattern between its slashes.
func (m *matcher) match(dir string, parts []string) error {
	if parts[0] == "**" && len(parts) > 1 { // ** may match zero directories: then the rest of the pattern applies to dir
		if err := m.match(dir, parts[1:]); err != nil {
			return err
		}
	}
	entries, err := fs.ReadDir(m.fsys, path.Join(m.root, dir))
	if err != nil {
		return err
	}
	for _, e := range entries {
		if m.visits++; m.visits > maxVisits {
			return fmt.Errorf("the pattern visits more than %d files; name the directory more exactly", maxVisits)
		}
		name := path.Join(dir, e.Name())
		switch fits, _ := path.Match(parts[0], e.Name()); {
		case strings.EqualFold(e.Name(), ".engine"):
		case e.IsDir() && parts[0] == "**":
			err = m.match(name, parts)
		case e.IsDir() && fits && len(parts) > 1:
			err = m.match(name, parts[1:])
		case fits && len(parts) == 1 && m.isFile(name):
			m.found[name] = true
		}
		if err == nil && len(m.found) > maxMatches {
			err = fmt.Errorf("more than %d files match the pattern", maxMatches)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// isFile reports whether a path leads to a regular file inside the module, perhaps through a
// symbolic link.
func (m *matcher) isFile(name string) bool {
	clean, err := resolveLinks(m.fsys, path.Join(m.root, name))
	if err != nil || ownDirectory(clean) {
		return false
	}
	info, err := fs.Stat(m.fsys, clean)
	return err == nil && info.Mode().IsRegular()
}
