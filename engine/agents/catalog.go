package agents

import (
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"log/slog"
	"os"
	"slices"
	"strings"
	"sync"

	"github.com/hashicorp/go-version"

	"github.com/saga-engine/engine/dsl/diag"
	"github.com/saga-engine/engine/dsl/lock"
	"github.com/saga-engine/engine/sdk/plugin"
)

// A Listed is one entry of Catalog.List. It says which binary is used for an agent.
type Listed struct {
	Binary
	// Shadows are the other binaries for this agent, which are not used. The binaries in the field
	// `Unlocked` are not among them.
	Shadows []Found
	Err     error // why the binary cannot be used; nil = it can be used
}

// CatalogOptions are the settings of a Catalog.
type CatalogOptions struct {
	Search   SearchOptions
	Lock     *lock.Lock   // lock file of the module whose directory is searched; nil = there is none
	CacheDir string       // directory that keeps descriptions of binaries; "" = the Catalog keeps none
	TempDir  string       // directory for private copies of binaries that the Catalog runs; "" = os.TempDir
	Logger   *slog.Logger // logger for warnings about agents; nil = the Catalog does not log
}

// A Catalog chooses the binaries of agents. It searches the directories at its first use, and
// at the next use after Refresh. It is safe for concurrent use.
type Catalog struct {
	search  SearchOptions
	lock    *lock.Lock // CatalogOptions.Lock; nil = there is none
	cache   cache
	tempDir string
	logger  *slog.Logger

	mu        sync.Mutex              // protects the fields below
	searched  bool                    // true = the directories were searched since the last Refresh
	warned    bool                    // true = the warning about dev_overrides was logged
	found     []Found                 // all binaries in the directories
	err       error                   // says which directories could not be searched; nil = all were searched
	described map[string]*description // descriptions of agents, by the path of the agent's binary
}

// description holds the checksum of one file, and the description that the file prints. To get the
// checksum, the engine only reads the file. To get the description, it must run the file, unless
// the description is in the cache.
type description struct {
	hashOnce sync.Once
	sum      string // SHA-256 in hex; "" if hashErr is set
	hashErr  error

	// asking gets the description of the file, or has got it; nil = the description was not asked
	// for, or all callers left before there was an answer. The field is protected by Catalog.mu.
	asking *asking
}

// An asking gets the description of a file from the cache, or runs the file once for it. All
// callers that need the description share one asking. If all callers leave before there is an
// answer, the asking is cancelled, and a later caller makes a new one.
type asking struct {
	waiting int // number of callers that wait; protected by Catalog.mu
	cancel  context.CancelFunc
	done    chan struct{} // closed when `binary` and `err` are set

	binary Binary // the described binary; may be read after `done` is closed
	err    error  // why there is no description; may be read after `done` is closed
}

// hash returns the SHA-256 of the file in hex. It reads the file only at the first call.
func (d *description) hash(path string) (string, error) {
	d.hashOnce.Do(func() { d.sum, d.hashErr = checksum(path) })
	return d.sum, d.hashErr
}

// NewCatalog returns a Catalog. It reads no file yet.
func NewCatalog(o CatalogOptions) *Catalog {
	if o.Logger == nil {
		o.Logger = slog.New(slog.DiscardHandler)
	}
	return &Catalog{
		search: o.Search, lock: o.Lock, cache: cache{dir: o.CacheDir, logger: o.Logger}, tempDir: o.TempDir, logger: o.Logger,
		described: map[string]*description{},
	}
}

// Refresh makes the Catalog search the directories again at its next use.
func (c *Catalog) Refresh() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.searched = false
	c.described = map[string]*description{}
}

// all returns all binaries in the directories. The error says which directories could not be
// searched.
func (c *Catalog) all() ([]Found, error) {
	c.mu.Lock()
	if !c.searched {
		c.found, c.err = Discover(c.search)
		c.searched = true
	}
	warn := len(c.search.DevOverrides) > 0 && !c.warned
	c.warned = c.warned || warn
	found, err := c.found, c.err
	c.mu.Unlock()
	if warn {
		c.logger.Warn("dev_overrides are in effect: the version and the checksum of these agents are not checked",
			"agents", strings.Join(sortedKeys(c.search.DevOverrides), ", "))
	}
	return found, err
}

// Find returns the binary to use for an agent. It takes the first directory that contains a version
// which meets the constraint, and returns the newest such version of this directory. A constraint
// looks like "~> 1.2"; "" = any version. An override (a binary from dev_overrides) meets every
// constraint. If the lock file does not name a file in the module's own directory, Find ignores
// this file and does not run it, not even for its description. The error is a *NotFoundError,
// *VersionError, *UnlockedError, or an error about the constraint, or the error of Describe.
func (c *Catalog) Find(ctx context.Context, name, constraint string) (Binary, error) {
	return c.find(ctx, name, constraint, c.trusts)
}

// find does the work of Find. If the function `counts` returns false for a file, find ignores this
// file.
func (c *Catalog) find(ctx context.Context, name, constraint string, counts func(Found) bool) (Binary, error) {
	want, err := parseConstraint(name, constraint)
	if err != nil {
		return Binary{}, err
	}
	var best *Binary
	var others []Binary
	var unlocked []Found
	for _, f := range c.named(name) {
		if best != nil && f.Dir != best.Dir {
			break // an earlier directory has a binary that fits, so later directories do not matter
		}
		if f.Version != "" && !fits(want, f.Version) {
			others = append(others, Binary{Found: f})
			continue
		}
		if !counts(f) {
			unlocked = append(unlocked, f)
			continue
		}
		b, err := c.Describe(ctx, f)
		switch {
		case err != nil:
			// If Find ignored this error, it might use a binary that the user did not intend.
			return Binary{}, err
		case f.Source == SourceDev:
			return b, nil
		case !fits(want, b.Version):
			others = append(others, b)
		case best == nil || newer(b.Version, best.Version):
			best = &b
		}
	}
	switch {
	case best != nil:
		best.Unlocked = unlocked
		return *best, nil
	case len(unlocked) > 0:
		return Binary{}, &UnlockedError{Name: name, Path: unlocked[0].Path}
	case len(others) > 0:
		return Binary{}, &VersionError{Name: name, Constraint: constraint, Have: others}
	}
	return Binary{}, c.notFound(name, "")
}

// Exact returns the binary with the version and the checksum that a definition names. If the
// version or the checksum is "", it is not compared. An override is accepted with any version and
// checksum. Except for an override, Exact runs no file whose checksum does not match. If no
// checksum matches, but a file may be another build of this version, Exact returns a
// *ChecksumError. If the checksum is "", Exact ignores a file in the module's own directory that
// the lock file does not name.
func (c *Catalog) Exact(ctx context.Context, name, ver, checksum string) (Binary, error) {
	return c.exact(ctx, name, ver, checksum, c.Describe)
}

// Present does the checks of Exact and returns only the error. If the lock file does not name a
// file in the module's own directory, Present does not run this file, so it cannot find all errors
// of the file.
func (c *Catalog) Present(ctx context.Context, name, ver, checksum string) error {
	_, err := c.exact(ctx, name, ver, checksum, func(ctx context.Context, f Found) (Binary, error) {
		if c.trusts(f) {
			return c.Describe(ctx, f)
		}
		// The path contains the version, so the engine need not run the file.
		return Binary{Found: f, Checksum: checksum}, nil
	})
	return err
}

// exact does the work of Exact. It gets the description of a file from the function `describe`.
func (c *Catalog) exact(ctx context.Context, name, ver, checksum string, describe func(context.Context, Found) (Binary, error)) (Binary, error) {
	if ver == "" && checksum == "" {
		return c.Find(ctx, name, "")
	}
	var changed *ChecksumError
	var others []Binary
	var unlocked []Found
	for _, f := range c.named(name) {
		if checksum == "" && !c.trusts(f) {
			unlocked = append(unlocked, f)
			continue
		}
		if f.Version != "" && ver != "" && !sameVersion(f.Version, ver) {
			others = append(others, Binary{Found: f})
			continue
		}
		if checksum != "" && f.Source != SourceDev {
			sum, err := c.entry(f.Path).hash(f.Path)
			if err != nil {
				return Binary{}, &plugin.StartError{
					Path: f.Path, Reason: plugin.ReasonMissing, Hint: "let the engine read the file, or reinstall the agent",
					Err: fmt.Errorf("its checksum cannot be compared: %w", err),
				}
			}
			if !strings.EqualFold(sum, checksum) {
				have := c.knownVersion(f, sum)
				switch {
				case have != "" && ver != "" && !sameVersion(have, ver):
					f.Version = have
					others = append(others, Binary{Found: f, Checksum: sum})
				case changed == nil:
					changed = &ChecksumError{Name: name, Version: cmp.Or(ver, have), Path: f.Path, Want: checksum, Have: sum}
				}
				continue
			}
		}
		b, err := describe(ctx, f)
		switch {
		case err != nil:
			return Binary{}, err
		case f.Source == SourceDev:
			return b, nil
		case ver != "" && !sameVersion(b.Version, ver):
			others = append(others, b)
		default:
			return b, nil
		}
	}
	switch {
	case changed != nil:
		return Binary{}, changed
	case len(unlocked) > 0:
		return Binary{}, &UnlockedError{Name: name, Path: unlocked[0].Path}
	case len(others) > 0:
		return Binary{}, &VersionError{Name: name, Constraint: "= " + ver, Have: others}
	}
	return Binary{}, c.notFound(name, ver)
}

// List returns one Listed for each agent, sorted by agent name. Each Listed contains the binary
// that Find returns without a constraint, and the other binaries of the agent. If Find returns an
// error, the Listed contains this error and the agent's first binary in the search order.
func (c *Catalog) List(ctx context.Context) ([]Listed, error) {
	byName := map[string][]Found{}
	all, err := c.all()
	for _, f := range all {
		byName[f.Name] = append(byName[f.Name], f)
	}
	var list []Listed
	for _, name := range sortedKeys(byName) {
		l := Listed{Binary: Binary{Found: byName[name][0]}}
		b, err := c.Find(ctx, name, "")
		if err != nil {
			l.Err = err
		} else {
			l.Binary = b
		}
		if ctx.Err() != nil {
			return nil, ctx.Err()
		}
		for _, f := range byName[name] {
			if f.Path != l.Path && !slices.Contains(l.Unlocked, f) {
				l.Shadows = append(l.Shadows, f)
			}
		}
		list = append(list, l)
	}
	return list, err
}

// Describe runs a binary for its description, or reads the description from the cache. It
// returns an error if this engine cannot talk to the binary.
func (c *Catalog) Describe(ctx context.Context, f Found) (Binary, error) {
	d := c.entry(f.Path)
	if err := ctx.Err(); err != nil {
		return Binary{}, fmt.Errorf("describe agent %q: %w", f.Name, err)
	}
	q := c.ask(ctx, f, d)
	select {
	case <-q.done:
		c.leave(d, q)
		return q.binary, q.err
	case <-ctx.Done():
		c.leave(d, q)
		return Binary{}, fmt.Errorf("describe agent %q: %w", f.Name, ctx.Err())
	}
}

// ask returns the asking that gets, or has got, the description of the file f. If there is no such
// asking, ask starts one. The caller must call the method `leave` later.
func (c *Catalog) ask(ctx context.Context, f Found, d *description) *asking {
	c.mu.Lock()
	defer c.mu.Unlock()
	if q := d.asking; q != nil {
		q.waiting++
		return q
	}
	q := &asking{waiting: 1, done: make(chan struct{})}
	ctx, q.cancel = context.WithCancel(context.WithoutCancel(ctx))
	d.asking = q
	go func() { // the last caller of the method `leave` waits for the end of this goroutine
		defer close(q.done)
		q.binary, q.err = c.describe(ctx, f, d)
	}()
	return q
}

// leave ends the wait of one caller. If the last caller leaves before there is an answer, leave
// cancels the asking and waits until the process of the binary has ended. A later caller
// starts a new asking.
func (c *Catalog) leave(d *description, q *asking) {
	c.mu.Lock()
	q.waiting--
	last := q.waiting == 0
	if last && d.asking == q {
		select {
		case <-q.done: // d keeps the answer for later callers
		default:
			d.asking = nil
		}
	}
	c.mu.Unlock()
	if last {
		q.cancel()
		<-q.done
	}
}

// entry returns the entry for a file in c.described. It creates a missing entry.
func (c *Catalog) entry(path string) *description {
	c.mu.Lock()
	defer c.mu.Unlock()
	d := c.described[path]
	if d == nil {
		d = &description{}
		c.described[path] = d
	}
	return d
}

// knownVersion returns a binary's version from its path or from the cache, without running the
// binary; "" = not known.
func (c *Catalog) knownVersion(f Found, sum string) string {
	if f.Version != "" {
		return f.Version
	}
	desc, _ := c.cache.get(sum)
	return desc.Version
}

func (c *Catalog) describe(ctx context.Context, f Found, d *description) (Binary, error) {
	sum, hashErr := d.hash(f.Path)
	desc, ok := c.cache.get(sum)
	if !ok {
		// The file may be replaced before it runs, so plugin.Describe compares its checksum. If the
		// checksum is not known, the file is not run.
		if hashErr != nil {
			return Binary{}, unreadable(f.Path, hashErr)
		}
		wanted, err := hex.DecodeString(sum)
		if err != nil {
			return Binary{}, fmt.Errorf("checksum of %s: %w", f.Path, err)
		}
		if desc, err = plugin.Describe(ctx, plugin.DescribeOptions{Path: f.Path, Checksum: wanted, TempDir: c.tempDir}); err != nil {
			return Binary{}, err
		}
		c.cache.put(sum, desc)
	}
	if err := desc.Compatible(f.Path); err != nil {
		return Binary{}, err
	}
	b := Binary{Found: f, Checksum: sum, Schema: desc.Schema}
	switch {
	case desc.Name != f.Name:
		return Binary{}, &plugin.StartError{
			Path: f.Path, Reason: plugin.ReasonDescription,
			Hint: "rename the file to " + binaryName(desc.Name) + ", or install the agent that belongs there",
			Err:  fmt.Errorf("the name of the file says agent %q, but the file holds agent %q", f.Name, desc.Name),
		}
	case f.Version != "" && !sameVersion(f.Version, desc.Version):
		return Binary{}, &plugin.StartError{
			Path: f.Path, Reason: plugin.ReasonDescription,
			Hint: "install it under its own version",
			Err:  fmt.Errorf("the directory is for version %s but the binary is version %s", f.Version, desc.Version),
		}
	}
	b.Version = desc.Version
	return b, nil
}

// unreadable returns the error for a file whose checksum cannot be computed.
func unreadable(path string, err error) error {
	e := &plugin.StartError{Path: path, Reason: plugin.ReasonNotExecutable, Hint: "make the file readable for the engine", Err: err}
	if errors.Is(err, fs.ErrNotExist) {
		e.Reason, e.Hint = plugin.ReasonMissing, "install the agent, or say where it is with --plugin-dir"
	}
	return e
}

func (c *Catalog) named(name string) []Found {
	all, _ := c.all() // the method notFound reports the error
	var fs []Found
	for _, f := range all {
		if f.Name == name {
			fs = append(fs, f)
		}
	}
	return fs
}

// notFound returns the *NotFoundError for an agent. The parameter `ver` is the needed version; "" =
// any.
func (c *Catalog) notFound(name, ver string) error {
	all, err := c.all()
	e := &NotFoundError{Name: name, Version: ver, Err: err}
	var installed []string
	for _, f := range all {
		installed = append(installed, f.Name)
	}
	e.Similar = diag.Nearest(name, installed)
	for _, p := range c.search.searchDirs() {
		if p.source == SourceDev {
			continue
		}
		e.Searched = append(e.Searched, p.dir)
		e.Misplaced = append(e.Misplaced, p.misplaced(name)...)
	}
	return e
}

// checksum returns the SHA-256 of a file in hex. The file must be a regular file.
func checksum(path string) (string, error) {
	// os.Open of a named pipe would block until another process opens the pipe for writing.
	if info, err := os.Stat(path); err != nil {
		return "", err
	} else if !info.Mode().IsRegular() {
		return "", fmt.Errorf("%s is not a regular file", path)
	}
	f, err := os.Open(path)
	if err != nil {
		return "", err
	}
	defer f.Close() //nolint:errcheck // only read
	h := sha256.New()
	if _, err := io.Copy(h, f); err != nil {
		return "", fmt.Errorf("read %s: %w", path, err)
	}
	return hex.EncodeToString(h.Sum(nil)), nil
}

// parseConstraint parses a version constraint. It returns nil for an empty text: any version.
func parseConstraint(name, text string) (version.Constraints, error) {
	if strings.TrimSpace(text) == "" {
		return nil, nil
	}
	cs, err := version.NewConstraint(text)
	if err != nil {
		return nil, fmt.Errorf("agent %q: version constraint %q: %w", name, text, err)
	}
	return cs, nil
}

// fits reports whether the version `text` meets the constraint `want`. If `want` is nil, every
// semantic version meets it. A text that is not a semantic version meets no constraint. A
// pre-release meets a constraint only if the constraint names a pre-release or has the operator !=.
func fits(want version.Constraints, text string) bool {
	v, err := version.NewSemver(text)
	if err != nil {
		return false
	}
	return want == nil || want.Check(v)
}

func sameVersion(a, b string) bool {
	x, errX := version.NewSemver(a)
	y, errY := version.NewSemver(b)
	return errX == nil && errY == nil && x.Equal(y) && x.Metadata() == y.Metadata()
}

func newer(a, b string) bool {
	x, errX := version.NewSemver(a)
	y, errY := version.NewSemver(b)
	return errX == nil && errY == nil && x.GreaterThan(y)
}

// meets reports whether a version meets a constraint such as "~> 1.2". Every semantic version meets
// the constraint "".
func meets(constraint, ver string) (bool, error) {
	cs, err := parseConstraint("", constraint)
	if err != nil {
		return false, err
	}
	return fits(cs, ver), nil
}

// trusts reports whether a file may be run. A file in the module's own directory came with a
// checkout, perhaps from a stranger: it may be run only if the lock file names its checksum.
// Other files may always be run: their directories belong to the user or to the engine.
func (c *Catalog) trusts(f Found) bool {
	if f.Source != SourceProject {
		return true
	}
	if c.lock == nil {
		return false
	}
	locked, ok := c.lock.Agent(f.Name)
	if !ok {
		return false
	}
	sum, err := c.entry(f.Path).hash(f.Path)
	return err == nil && strings.EqualFold(sum, locked.Hashes[Platform()])
}

// Displaced returns the agent's binaries outside of the module's own directory, if b comes from
// this directory: they are not used. If b comes from another directory, Displaced returns nil.
func (c *Catalog) Displaced(b Binary) []Found {
	if b.Source != SourceProject {
		return nil
	}
	var list []Found
	for _, f := range c.named(b.Name) {
		if f.Source != SourceProject {
			list = append(list, f)
		}
	}
	return list
}
