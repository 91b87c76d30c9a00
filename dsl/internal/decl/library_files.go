package decl

import (
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"path"

	"github.com/saga-engine/engine/dsl/internal/functions"
	"github.com/saga-engine/engine/dsl/internal/sorted"
	"github.com/saga-engine/engine/dsl/internal/syntax"
)

// libraries holds the libraries of a main module, and the libraries of these libraries. While these
// modules are read, all of them share one value of this type.
type libraries struct {
	source librarySource
	build  func(lib *Module, source readSource) // parses the files of lib and adds their declarations to lib
	// read holds the libraries by path, relative to the directory of the main module. nil = the
	// library could not be read, or it is being read.
	read  map[string]*Module
	files int // number of files of all libraries
	bytes int // total size of the files of all libraries, in bytes
}

// add adds the number and the size of a library's files to l.files and l.bytes. It returns an error
// if all libraries together have too many files or are too large.
func (l *libraries) add(lib *Module) error {
	l.files += len(lib.Files)
	for _, src := range lib.Files {
		l.bytes += len(src)
	}
	switch {
	case l.files > syntax.MaxFiles:
		return fmt.Errorf("the libraries of a module may have at most %d files together", syntax.MaxFiles)
	case l.bytes > syntax.MaxModule:
		return errLibrariesTooLarge
	}
	return nil
}

var errLibrariesTooLarge = errors.New("the libraries of a module may hold at most 16 MiB together")

// complete returns the libraries that were read, by path. Their declarations may have errors.
func (l *libraries) complete() map[string]*Module {
	out := maps.Clone(l.read)
	maps.DeleteFunc(out, func(_ string, m *Module) bool { return m == nil })
	return out
}

// A librarySource supplies the files of libraries while a definition is loaded.
type librarySource interface {
	// open returns the library at a path as a Module that has its files, but no declarations yet.
	// It also returns the source for file() and env() in the library.
	open(name string) (*Module, readSource, error)
}

// liveLibraries is a librarySource that reads the file system.
type liveLibraries struct {
	root fs.FS                       // file system that contains the libraries
	home string                      // path of the directory of the main module in the file system `root`
	env  func(string) (string, bool) // looks up an environment variable; nil = no variable is set
}

func (s liveLibraries) open(name string) (*Module, readSource, error) {
	at := path.Join(s.home, name)
	if !fs.ValidPath(at) {
		return nil, nil, fmt.Errorf("%q is outside of the directory in which the engine works. Start the engine in a directory that contains both the module and the library, or name such a directory with --chdir", name)
	}
	var info fs.FileInfo
	real, err := resolveLinks(s.root, at)
	if err == nil {
		info, err = fs.Stat(s.root, real)
	}
	switch {
	case errors.Is(err, errLinkLeaves):
		return nil, nil, fmt.Errorf("a symbolic link in %q leads out of the directory in which the engine works", name)
	case errors.Is(err, fs.ErrNotExist):
		return nil, nil, fmt.Errorf("%q does not exist", name)
	case err != nil:
		return nil, nil, err
	case ownDirectory(real):
		return nil, nil, errOwnDirectory
	}
	lib, dir, shown := newModule(""), real, name
	if !info.IsDir() {
		if !isModuleFile(path.Base(name)) {
			return nil, nil, fmt.Errorf("%q is neither a directory nor a file whose name ends in .hcl or .hcl.json", name)
		}
		dir, shown = path.Dir(real), path.Dir(name)
		lib.File = name
	}
	fsys, err := fs.Sub(s.root, dir)
	if err == nil {
		err = lib.loadLibrary(fsys, shown, path.Base(real))
	}
	return lib, liveSource{fsys: fsys, env: s.env, reads: &lib.Reads, use: &readUse{}}, err
}

// loadLibrary reads the files of a library into m.Files. The parameter `fsys` is the directory of
// the library. The parameter `shown` is the path of this directory in messages: the names of the
// files in m.Files begin with this path. If the library is a single file, `base` is its name in
// fsys.
func (m *Module) loadLibrary(fsys fs.FS, shown, base string) error {
	names := map[string]string{} // maps the name of a file in fsys to its name in m.Files
	if m.File != "" {
		names[base] = m.File
	} else {
		entries, err := fs.ReadDir(fsys, ".")
		if err != nil {
			return err
		}
		for _, e := range entries {
			if !e.IsDir() && isModuleFile(e.Name()) {
				names[e.Name()] = path.Join(shown, e.Name())
			}
		}
		if len(names) == 0 {
			return fmt.Errorf("the directory %q holds no *.hcl file", shown)
		}
	}
	total := 0
	for _, name := range sorted.Keys(names) {
		full := names[name]
		real, err := resolveLinks(fsys, name)
		switch {
		case errors.Is(err, errLinkLeaves):
			return fmt.Errorf("%q is a symbolic link that leads out of its directory", full)
		case err == nil && ownDirectory(real):
			return errOwnDirectory
		}
		if err == nil {
			m.Files[full], err = readLimited(fsys, real)
		}
		if err != nil {
			return fmt.Errorf("%q: %w", full, err)
		}
		if total += len(m.Files[full]); total > syntax.MaxModule {
			return errLibrariesTooLarge
		}
	}
	return nil
}

// A Stored holds the files of a module of a stored definition, and the results that file() and
// env() had when the definition was loaded.
type Stored struct {
	File  string            // name of the only file, if the module is a single file; otherwise ""
	Files map[string][]byte // texts of the files by name
	Reads functions.Reads
	// Libraries holds all libraries of a main module by path, with the libraries of its libraries.
	Libraries map[string]Stored
	Agents    map[string]bool // names of all agents of the definition; only for a main module
}

// storedLibraries is the librarySource of a stored definition. Its keys are the paths of libraries.
type storedLibraries map[string]Stored

func (s storedLibraries) open(name string) (*Module, readSource, error) {
	kept, ok := s[name]
	if !ok {
		return nil, nil, fmt.Errorf("the definition does not hold %q", name)
	}
	lib := newModule(kept.File)
	lib.Files, lib.Reads = kept.Files, kept.Reads
	return lib, storedSource{&lib.Reads}, nil
}
