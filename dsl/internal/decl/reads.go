package decl

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"path"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/hashicorp/hcl/v2/hclsyntax"

	"github.com/saga-engine/engine/dsl/internal/eval"
	"github.com/saga-engine/engine/dsl/internal/functions"
	"github.com/saga-engine/engine/dsl/internal/syntax"
)

var (
	errTooLarge     = errors.New("larger than 1 MiB")
	errOwnDirectory = errors.New("the directory .engine holds the engine's state and key, which workflows do not get")
)

// isModuleFile reports whether a file in the directory of a module belongs to the module. Only the
// name of the file decides.
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

// A readSource supplies the results of file(), fileset(), fileexists(), env() and similar
// functions. These functions read files and the environment only while a definition is loaded. A
// readSource makes sure that their results are in Module.Reads: liveSource adds a missing result,
// and storedSource returns an error for a missing result of a file.
type readSource interface {
	// readFile reads a file. If the parameter `text` is true, liveSource returns an error for a
	// file that is not UTF-8 text.
	readFile(name string, text bool) error
	readSet(dir, pattern string) error
	readExists(name string) error
	readEnv(name string)
}

// liveSource is a readSource that reads the file system and the environment.
type liveSource struct {
	fsys  fs.FS
	env   func(string) (string, bool) // looks up an environment variable; nil = no variable is set
	reads *functions.Reads            // results that the liveSource has read
	use   *readUse
}

// Limits of what file() and similar functions read for one module. They are needed because the
// engine stores everything that was read in the definition. maxReads is the largest number of
// reads; a second read of the same file does not count. All files together may have maxReadBytes
// bytes. After a file that is too large for the rest of these bytes, the module may read no further
// file, even a smaller one.
const (
	maxReads     = 10_000
	maxReadBytes = 16 << 20
)

// A readUse counts what a module has read.
type readUse struct{ reads, bytes int }

// admit counts one more read. It returns an error if the module now has more than maxReads reads,
// or has already read more than maxReadBytes bytes.
func (u *readUse) admit() error {
	if u.reads++; u.reads > maxReads {
		return fmt.Errorf("a module may read at most %d files and file names", maxReads)
	}
	return u.hold(0)
}

// hold counts n more bytes. It returns an error if the module now has read more than maxReadBytes
// bytes.
func (u *readUse) hold(n int) error {
	if u.bytes += n; u.bytes > maxReadBytes {
		return fmt.Errorf("the files that a module reads may hold at most %d MiB", maxReadBytes>>20)
	}
	return nil
}

// locate checks a path of a definition and returns the path without symbolic links. It returns an
// error for a path that leads out of the directory of the module, or into .engine.
func (s liveSource) locate(name string) (string, error) {
	if err := s.use.admit(); err != nil {
		return "", err
	}
	clean := path.Clean(name)
	if name == "" || strings.Contains(name, `\`) || !fs.ValidPath(clean) {
		return "", errors.New("the path must be relative and stay inside the module's directory")
	}
	given := clean
	clean, err := resolveLinks(s.fsys, clean)
	if err != nil && !ownDirectory(given) {
		return "", err
	}
	if ownDirectory(given) || ownDirectory(clean) {
		return "", errOwnDirectory
	}
	return clean, nil
}

func (s liveSource) readFile(name string, text bool) error {
	content, known := s.reads.Files[name]
	if !known {
		clean, err := s.locate(name)
		if err != nil {
			return err
		}
		data, err := readLimited(s.fsys, clean)
		if err != nil {
			return err
		}
		if err := s.use.hold(len(data)); err != nil {
			return err
		}
		content = string(data)
	}
	if text && !utf8.ValidString(content) {
		return errors.New("the file is not valid UTF-8 text")
	}
	s.reads.Files[name] = content
	return nil
}

func (s liveSource) readExists(name string) error {
	if _, known := s.reads.Exists[name]; known {
		return nil
	}
	clean, err := s.locate(name)
	exists := err == nil
	if err == nil {
		info, serr := fs.Stat(s.fsys, clean)
		if exists = serr == nil; exists && !info.Mode().IsRegular() {
			return fmt.Errorf("%s is not a regular file", name)
		}
		err = serr
	}
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	if s.reads.Exists == nil {
		s.reads.Exists = map[string]bool{}
	}
	s.reads.Exists[name] = exists
	return nil
}

func (s liveSource) readSet(dir, pattern string) error {
	if _, known := s.reads.Sets[dir][pattern]; known {
		return nil
	}
	clean, err := s.locate(dir)
	if err != nil {
		return err
	}
	names, err := matchFiles(s.fsys, clean, pattern)
	if err != nil {
		return err
	}
	if s.reads.Sets == nil {
		s.reads.Sets = map[string]map[string][]string{}
	}
	if s.reads.Sets[dir] == nil {
		s.reads.Sets[dir] = map[string][]string{}
	}
	s.reads.Sets[dir][pattern] = names
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

// storedSource is the readSource of a stored definition. It reads no files, because the definition
// holds all results.
type storedSource struct{ reads *functions.Reads }

func (s storedSource) readFile(name string, _ bool) error {
	_, known := s.reads.Files[name]
	return held(known, name)
}

func (s storedSource) readExists(name string) error {
	_, known := s.reads.Exists[name]
	return held(known, name)
}

func (s storedSource) readSet(dir, pattern string) error {
	_, known := s.reads.Sets[dir][pattern]
	return held(known, dir+"/"+pattern)
}

func held(known bool, name string) error {
	if !known {
		return fmt.Errorf("the definition does not hold %q", name)
	}
	return nil
}

func (s storedSource) readEnv(string) {}

// ReadsFiles reports whether an expression calls a function that reads a file or the environment.
func ReadsFiles(e *eval.Expr) bool {
	return slices.ContainsFunc(eval.Calls(e.Syntax), func(c *hclsyntax.FunctionCallExpr) bool {
		_, reads := functions.Literal[c.Name]
		return reads
	})
}

// ReadsSum returns a checksum of everything that file() and similar functions have read for the
// module.
func ReadsSum(m *Module) string {
	r := functions.Reads{Files: m.Reads.Files, Env: m.Reads.Env, Sets: m.Reads.Sets, Exists: m.Reads.Exists}
	data, err := json.Marshal(r)
	if err != nil { // cannot happen: these maps can always be encoded
		return err.Error()
	}
	sum := sha256.Sum256(data)
	return hex.EncodeToString(sum[:])
}
