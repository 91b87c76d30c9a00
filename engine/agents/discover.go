package agents

import (
	"cmp"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"runtime"
	"slices"
	"strings"

	"github.com/hashicorp/go-version"

	"github.com/saga-engine/engine/dsl"
	"github.com/saga-engine/engine/dsl/diag"
	"github.com/saga-engine/engine/dsl/lock"
	"github.com/saga-engine/engine/sdk/schema"
)

// binaryPrefix is the beginning of the name of every agent's binary.
const binaryPrefix = "engine-agent-"

// Source says where a binary was found.
type Source string

// The sources, in the order in which they are searched.
const (
	SourceFlag    Source = "plugin-dir"        // a directory named on the command line
	SourceDev     Source = "dev_overrides"     // a path in the user's configuration file
	SourceProject Source = "project"           // the directory .engine/agents of the module
	SourceEnv     Source = "ENGINE_PLUGIN_DIR" // a directory named in the environment
	SourceUser    Source = "user"              // the user's data directory
	SourceEngine  Source = "engine"            // the directory of the engine's binary
	sourceBlock   Source = "source"            // the argument `source` of an agent block; only "engine init" looks there
)

// SearchOptions say in which directories the Catalog searches agents. An empty field means that
// there is no such directory. The working directory and PATH are never searched.
type SearchOptions struct {
	PluginDirs []string // directories of the flag --plugin-dir
	// DevOverrides holds, for each agent name, the path of the agent's binary, or of the
	// directory with this binary.
	DevOverrides map[string]string
	Modules      []string // directories of modules; .engine/agents in each is searched
	EnvDirs      []string // directories in the variable ENGINE_PLUGIN_DIR
	UserDir      string   // the user's directory for agents; one subdirectory for each agent name
	EngineDir    string   // directory of the engine's binary

	block map[string]string // for each agent name, the path in the argument `source` of its agent block
}

// A Found is an agent's binary that a search has found.
type Found struct {
	Name    string // agent name
	Version string // version in the path; "" = the path has none, so the Catalog asks the binary
	Path    string // absolute path of the binary
	Source  Source
	Dir     string // searched directory in which the binary was found; "" = an override
}

// Platform returns the name of this platform in paths and lock files, such as "linux_amd64".
func Platform() string { return runtime.GOOS + "_" + runtime.GOARCH }

// searchDir is one directory to search.
type searchDir struct {
	source Source
	dir    string
	flat   bool // true = binaries may also lie directly in the directory, without a version
}

func (o SearchOptions) searchDirs() []searchDir {
	var ps []searchDir
	add := func(source Source, dir string, flat bool) {
		if dir != "" {
			ps = append(ps, searchDir{source, dir, flat})
		}
	}
	for _, d := range o.PluginDirs {
		add(SourceFlag, d, true)
	}
	if len(o.DevOverrides) > 0 {
		ps = append(ps, searchDir{source: SourceDev})
	}
	for _, dir := range o.Modules {
		add(SourceProject, filepath.Join(dir, ".engine", "agents"), false)
	}
	for _, d := range o.EnvDirs {
		add(SourceEnv, d, true)
	}
	add(SourceUser, o.UserDir, false)
	add(SourceEngine, o.EngineDir, true)
	for _, name := range sortedKeys(o.block) {
		add(sourceBlock, o.block[name], true)
	}
	return ps
}

// Discover lists all agent binaries in order of precedence. It runs none of them. Within each
// directory, the binaries without a version in their path come first. Then the newest version of
// each agent comes first. A directory of --plugin-dir or ENGINE_PLUGIN_DIR must exist; other
// directories need not exist. If a directory cannot be read, Discover returns an error together
// with the binaries of the other directories.
func Discover(o SearchOptions) ([]Found, error) {
	var found []Found
	var errs []error
	seen := map[string]bool{}
	for _, p := range o.searchDirs() {
		var here []Found
		var err error
		switch p.source {
		case SourceDev:
			here, err = overrides(o.DevOverrides)
		case sourceBlock:
			here, err = blockFound(o.block)
		default:
			here, err = p.search()
		}
		if err != nil {
			errs = append(errs, err)
		}
		for _, f := range here {
			if !seen[f.Path] { // two options may name the same directory
				seen[f.Path] = true
				found = append(found, f)
			}
		}
	}
	return found, errors.Join(errs...)
}

// search lists the binaries of one directory. Their paths in the directory are
// NAME/VERSION/OS_ARCH/engine-agent-NAME and, if `flat` is set, engine-agent-NAME.
func (p searchDir) search() ([]Found, error) {
	dir, err := filepath.Abs(p.dir)
	if err != nil {
		return nil, fmt.Errorf("search agents in %s: %w", p.dir, err)
	}
	entries, err := os.ReadDir(dir)
	if err != nil {
		named := p.source == SourceFlag || p.source == SourceEnv
		if errors.Is(err, fs.ErrNotExist) && !named {
			return nil, nil
		}
		return nil, fmt.Errorf("search agents (%s): %w", p.source, err)
	}
	var flat, versioned []Found
	var errs []error
	for _, e := range entries {
		if name, ok := agentName(e.Name()); ok && p.flat && !e.IsDir() {
			flat = append(flat, Found{Name: name, Path: filepath.Join(dir, e.Name()), Source: p.source, Dir: dir})
			continue
		}
		if !namePattern.MatchString(e.Name()) || !isDir(filepath.Join(dir, e.Name())) {
			continue
		}
		vs, err := p.versions(dir, e.Name())
		versioned = append(versioned, vs...)
		errs = append(errs, err)
	}
	return append(flat, versioned...), errors.Join(errs...)
}

// versions lists the binaries of one agent in a directory that is searched, newest first.
func (p searchDir) versions(searched, name string) ([]Found, error) {
	dir := filepath.Join(searched, name)
	entries, err := os.ReadDir(dir)
	if err != nil {
		return nil, fmt.Errorf("search agents (%s): %w", p.source, err)
	}
	var found []Found
	parsed := map[string]*version.Version{}
	for _, e := range entries {
		v, err := version.NewSemver(e.Name())
		if err != nil {
			continue // not a version directory
		}
		path := filepath.Join(dir, e.Name(), Platform(), binaryName(name))
		if info, err := os.Stat(path); err != nil || info.IsDir() {
			continue // this version has no binary for this platform
		}
		parsed[e.Name()] = v
		found = append(found, Found{Name: name, Version: e.Name(), Path: path, Source: p.source, Dir: searched})
	}
	slices.SortFunc(found, func(a, b Found) int {
		return cmp.Or(parsed[b.Version].Compare(parsed[a.Version]), cmp.Compare(a.Version, b.Version))
	})
	return found, nil
}

// misplaced lists binaries of an agent that are in a directory above the right one. This
// happens when people copy files by hand.
func (p searchDir) misplaced(name string) []Misplaced {
	dir, err := filepath.Abs(p.dir)
	if err != nil || !namePattern.MatchString(name) {
		return nil
	}
	file := binaryName(name)
	var list []Misplaced
	add := func(path, ver string) {
		if info, err := os.Stat(path); err == nil && !info.IsDir() {
			list = append(list, Misplaced{Path: path, Want: filepath.Join(dir, name, ver, Platform(), file)})
		}
	}
	if !p.flat {
		add(filepath.Join(dir, file), "VERSION")
	}
	add(filepath.Join(dir, name, file), "VERSION")
	versions, err := os.ReadDir(filepath.Join(dir, name))
	if err != nil {
		return list // there is no such directory
	}
	for _, v := range versions {
		if _, err := version.NewSemver(v.Name()); err == nil {
			add(filepath.Join(dir, name, v.Name(), file), v.Name())
		}
	}
	return list
}

// overrides lists the binaries in the user's dev_overrides. It also lists a binary that does not
// exist. The start of such a binary fails. If overrides left it out, the engine would run a binary
// that the user did not intend.
func overrides(m map[string]string) ([]Found, error) {
	var found []Found
	for _, name := range sortedKeys(m) {
		path, err := filepath.Abs(m[name])
		if err != nil {
			return found, fmt.Errorf("dev_overrides: agent %q: %w", name, err)
		}
		if isDir(path) {
			path = filepath.Join(path, binaryName(name))
		}
		found = append(found, Found{Name: name, Path: path, Source: SourceDev})
	}
	return found, nil
}

// blockFound lists the binaries of agents whose blocks have the argument `source`. The parameter
// `sources` holds these arguments, by agent name.
func blockFound(sources map[string]string) ([]Found, error) {
	var found []Found
	for _, name := range sortedKeys(sources) {
		path, err := filepath.Abs(sources[name])
		if err != nil {
			return found, err
		}
		if info, err := os.Stat(path); err == nil && info.Mode().IsRegular() {
			found = append(found, Found{Name: name, Path: path, Source: sourceBlock, Dir: filepath.Dir(path)})
			continue
		}
		here, err := searchDir{sourceBlock, path, true}.search()
		if err != nil {
			return found, err
		}
		for _, f := range here {
			if f.Name == name {
				found = append(found, f)
			}
		}
	}
	return found, nil
}

var namePattern = regexp.MustCompile(`^[a-z][a-z0-9_-]{0,62}$`)

// agentName returns the agent name NAME of a file engine-agent-NAME. It returns false if the
// file is not named in this way.
func agentName(file string) (string, bool) {
	name, ok := strings.CutPrefix(file, binaryPrefix)
	if runtime.GOOS == "windows" {
		name, ok = strings.CutSuffix(name, ".exe")
	}
	return name, ok && namePattern.MatchString(name)
}

func binaryName(agent string) string {
	if runtime.GOOS == "windows" {
		return binaryPrefix + agent + ".exe"
	}
	return binaryPrefix + agent
}

func isDir(path string) bool {
	info, err := os.Stat(path)
	return err == nil && info.IsDir()
}

// DefaultSearch returns the directories and overrides that do not depend on a module or on flags.
// These are the directories in ENGINE_PLUGIN_DIR, the overrides in the user's configuration file,
// the user's data directory, and the directory of the engine's binary. The caller adds the
// directories of flags and of the module. The diagnostics are about the configuration file.
func DefaultSearch(getenv func(string) string) (SearchOptions, diag.Diagnostics) {
	o := SearchOptions{UserDir: userDir(getenv)}
	for _, d := range filepath.SplitList(getenv("ENGINE_PLUGIN_DIR")) {
		if d != "" {
			o.EnvDirs = append(o.EnvDirs, d)
		}
	}
	if exe, err := os.Executable(); err == nil {
		if real, err := filepath.EvalSymlinks(exe); err == nil {
			exe = real
		}
		o.EngineDir = filepath.Dir(exe)
	}
	path := configFile(getenv)
	if path == "" {
		return o, nil
	}
	src, err := os.ReadFile(path)
	if errors.Is(err, fs.ErrNotExist) {
		return o, nil
	}
	if err != nil {
		return o, diag.Diagnostics{{Severity: diag.SeverityError, Summary: "Cannot read the configuration file", Detail: err.Error()}}
	}
	conf, diags := lock.ReadUserConfig(src, path)
	o.DevOverrides = conf.DevOverrides
	for name, p := range o.DevOverrides {
		if !filepath.IsAbs(p) {
			o.DevOverrides[name] = filepath.Join(filepath.Dir(path), p)
		}
	}
	return o, diags
}

// configFile returns the path of the user's configuration file. The path is ENGINE_CONFIG, or
// else engine/config.hcl in the user's configuration directory. It is "" if neither is known.
func configFile(getenv func(string) string) string {
	if path := getenv("ENGINE_CONFIG"); path != "" {
		return path
	}
	if dir := userBase(getenv, "XDG_CONFIG_HOME", ".config", "APPDATA"); dir != "" {
		return filepath.Join(dir, "engine", "config.hcl")
	}
	return ""
}

// CacheDir returns the directory for cached descriptions of agents; "" = not known.
func CacheDir(getenv func(string) string) string {
	if dir := userBase(getenv, "XDG_CACHE_HOME", ".cache", "LOCALAPPDATA"); dir != "" {
		return filepath.Join(dir, "engine", "agents")
	}
	return ""
}

// userDir returns the directory in which the user's agents are installed; "" = not known.
func userDir(getenv func(string) string) string {
	if dir := userBase(getenv, "XDG_DATA_HOME", filepath.Join(".local", "share"), "LOCALAPPDATA"); dir != "" {
		return filepath.Join(dir, "engine", "agents")
	}
	return ""
}

// userBase returns one of the user's base directories; "" = not known. On Windows, it returns the
// value of an environment variable, whose name is the parameter `windows`. On other systems, it
// returns the value of the environment variable whose name is the parameter `xdg`. If this value is
// no absolute path, it returns the path `below` in the home directory.
func userBase(getenv func(string) string, xdg, below, windows string) string {
	if runtime.GOOS == "windows" {
		return getenv(windows)
	}
	if dir := getenv(xdg); filepath.IsAbs(dir) {
		return dir
	}
	if home := getenv("HOME"); filepath.IsAbs(home) {
		return filepath.Join(home, below)
	}
	return ""
}

func sortedKeys[V any](m map[string]V) []string {
	keys := make([]string, 0, len(m))
	for k := range m {
		keys = append(keys, k)
	}
	slices.Sort(keys)
	return keys
}

// A Binary is an agent's binary with its description.
type Binary struct {
	Found
	Checksum string // SHA-256 of the file, in hex
	Schema   schema.Schema
	// Unlocked are files for this agent in the module's own directory. They were ignored and
	// not run, because no lock file names them.
	Unlocked []Found
}

// Pin returns the facts about the binary that are stored in a definition. For a binary from
// dev_overrides the checksum is left out, because the binary may change during a run.
func (b Binary) Pin() dsl.AgentBinary {
	pin := dsl.AgentBinary{Schema: b.Schema, Version: b.Version, Checksum: b.Checksum}
	if b.Source == SourceDev {
		pin.Checksum = ""
	}
	return pin
}

// A Misplaced is a binary that is in a searched directory, but at a path where the search does not
// find it.
type Misplaced struct {
	Path string
	Want string // path where the binary should be; contains the word VERSION if the version is not known
}
