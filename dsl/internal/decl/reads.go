package decl

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"path"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/saga-engine/engine/dsl/internal/functions"
	"github.com/saga-engine/engine/dsl/internal/syntax"
)

var (
	errTooLarge     = errors.New("larger than 1 MiB")
	errLinkLeaves   = errors.New("a symbolic link leads out of the module's directory")
	errOwnDirectory = errors.New("the directory .engine holds the engine's state and key, which workflows do not get")
)

// isModuleFile reports whether a file in the directory belongs to the module, by its name.
func isModuleFile(name string) bool {
	base := strings.TrimSuffix(name, ".json")
	return strings.HasSuffix(base, ".hcl") && !strings.HasPrefix(name, ".") &&
		!strings.HasSuffix(base, ".test.hcl") && !strings.HasSuffix(base, ".vars.hcl")
}

func readLimited(fsys fs.FS, name string) (data []byte, err error) {
	// Check the file before it is opened: opening a pipe would wait for a writer, and opening a
	// device may have effects.
	info, err := fs.Stat(fsys, name)
	if err == nil && !info.Mode().IsRegular() {
		err = fmt.Errorf("%s is not a regular file", name)
	}
	if err != nil {
		return nil, err
	}
	f, err := fsys.Open(name)
	if err != nil {
		return nil, err
	}
	defer func() {
		if cerr := f.Close(); err == nil && cerr != nil {
			data, err = nil, cerr
		}
	}()
	if info, err = f.Stat(); err != nil {
		return nil, err
	}
	if !info.Mode().IsRegular() {
		return nil, fmt.Errorf("%s is not a regular file", name)
	}
	data, err = io.ReadAll(io.LimitReader(f, syntax.MaxSource+1))
	if err != nil {
		return nil, err
	}
	if len(data) > syntax.MaxSource {
		return nil, errTooLarge
	}
	return data, nil
}

// A readSource supplies the results of file() and env() while a definition is loaded. It adds
// the results to Module.Reads.
type readSource interface {
	readFile(name string) error
	readEnv(name string)
}

// liveSource is a readSource that reads the file system and the environment.
type liveSource struct {
	fsys  fs.FS
	env   func(string) (string, bool) // looks up an environment variable; nil = no variable is set
	reads *functions.Reads            // results that the liveSource has read
}

func (s liveSource) readFile(name string) error {
	if _, known := s.reads.Files[name]; known {
		return nil
	}
	clean := path.Clean(name)
	if name == "" || strings.Contains(name, `\`) || !fs.ValidPath(clean) {
		return errors.New("the path must be relative and stay inside the module's directory")
	}
	clean, err := resolveLinks(s.fsys, clean)
	if err != nil {
		return err
	}
	if ownDirectory(clean) {
		return errOwnDirectory
	}
	data, err := readLimited(s.fsys, clean)
	if err != nil {
		return err
	}
	if !utf8.Valid(data) {
		return errors.New("the file is not valid UTF-8 text")
	}
	s.reads.Files[name] = string(data)
	return nil
}

func (s liveSource) readEnv(name string) {
	if _, known := s.reads.Env[name]; known {
		return
	}
	s.reads.Env[name] = nil
	if s.env != nil {
		if v, ok := s.env(name); ok {
			s.reads.Env[name] = &v
		}
	}
}

// ownDirectory reports whether a path leads into a directory named .engine. It ignores upper and
// lower case in the name, because some file systems do so, too.
func ownDirectory(name string) bool {
	return slices.ContainsFunc(strings.Split(name, "/"), func(part string) bool { return strings.EqualFold(part, ".engine") })
}

// resolveLinks returns the path name with each symbolic link replaced by its target. If a link
// leads out of the directory of the module, it returns an error. os.DirFS would follow such a link.
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

// storedSource is the readSource of a stored definition. It reads no files and no environment
// variables, because its field reads already holds all results.
type storedSource struct{ reads *functions.Reads }

func (s storedSource) readFile(name string) error {
	if _, known := s.reads.Files[name]; !known {
		return fmt.Errorf("the definition does not hold %q", name)
	}
	return nil
}

func (s storedSource) readEnv(string) {}
