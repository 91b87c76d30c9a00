package decl

import (
	"errors"
	"io/fs"
	"path"
	"slices"
	"strings"
)

var errLinkLeaves = errors.New("a symbolic link leads out of the module's directory")

// ownDirectory reports whether a path leads into a directory named .engine. It ignores upper and
// lower case in the name, because some file systems do so, too.
func ownDirectory(name string) bool {
	return slices.ContainsFunc(strings.Split(name, "/"), func(part string) bool { return strings.EqualFold(part, ".engine") })
}

// resolveLinks takes a path in fsys, and returns the path with each symbolic link replaced by
// its target. If a link leads out of the root directory of fsys, or has an absolute path as
// its target, resolveLinks returns an error. The check is needed, because os.DirFS would
// follow such a link.
func resolveLinks(fsys fs.FS, name string) (string, error) {
	lfs, ok := fsys.(fs.ReadLinkFS)
	if !ok {
		return name, nil // fsys has no symbolic links, so there is nothing to replace
	}
	done, rest := ".", strings.Split(name, "/")
	for hops := 0; len(rest) > 0; {
		next := path.Join(done, rest[0])
		rest = rest[1:]
		if !fs.ValidPath(next) {
			return "", errLinkLeaves
		}
		info, err := lfs.Lstat(next)
		if err != nil {
			return "", err
		}
		if info.Mode()&fs.ModeSymlink == 0 {
			done = next
			continue
		}
		if hops++; hops > 40 {
			return "", errors.New("too many symbolic links")
		}
		target, err := lfs.ReadLink(next)
		if err != nil {
			return "", err
		}
		joined := path.Join(path.Dir(next), target)
		if path.IsAbs(target) || !fs.ValidPath(joined) {
			return "", errLinkLeaves
		}
		done, rest = ".", append(strings.Split(joined, "/"), rest...)
	}
	return done, nil
}
