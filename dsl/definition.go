package dsl

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"maps"

	"github.com/saga-engine/engine/dsl/diag"
	"github.com/saga-engine/engine/dsl/internal/decl"
	"github.com/saga-engine/engine/dsl/internal/functions"
	"github.com/saga-engine/engine/dsl/internal/syntax"
	"github.com/saga-engine/engine/sdk/schema"
)

// A Definition is a linked module: its workflows, checked against the schemas of its agents. A
// run uses the same Definition until the run ends. A Definition is immutable and safe for
// concurrent use.
type Definition struct {
	// Warnings are the findings of Link: warnings and infos. None of them is an error.
	Warnings diag.Diagnostics

	module    *decl.Module
	digest    string
	encoded   []byte
	names     []string
	inner     []string // names of the workflows that only a step can start, sorted
	workflows map[string]*Workflow
}

// Digest returns the sha256 of the manifest, in hex. The manifest names everything that affects
// a run, so definitions with equal digests behave in the same way.
func (d *Definition) Digest() string { return d.digest }

// Encode returns the definition in the form in which it is stored. Equal
// definitions have equal bytes. The caller must not change the bytes.
func (d *Definition) Encode() []byte { return d.encoded }

// All returns the names of all workflows, except the workflows of notifications. The names that the
// method Names returns come first. Then come the workflows that only a step can start (see
// Workflow.Inner), sorted.
func (d *Definition) All() []string { return append(d.Names(), d.inner...) }

// Names returns the names of the workflows that a person, a program or a schedule can start. They
// are ordered by file name and by position in the file.
func (d *Definition) Names() []string { return append([]string(nil), d.names...) }

// Stored returns the names of all workflows of the definition, including the workflows of
// notifications. The workflows are in the same order as in the result of All. Directly after
// each workflow come the workflows that send its notifications.
func (d *Definition) Stored() []string {
	var out []string
	for _, name := range d.All() {
		out = append(out, name)
		for _, n := range d.workflows[name].Notify {
			out = append(out, n.Flow.Name)
		}
	}
	return out
}

// Workflow returns a workflow by name, or nil if there is none. It finds every workflow that Stored
// names.
func (d *Definition) Workflow(name string) *Workflow { return d.workflows[name] }

// formatVersion is the version of the form in which definitions are stored.
const formatVersion = 1

// manifest lists everything that a definition consists of. For each file, value and schema it
// holds only the sha256. stored.Blobs maps this sha256 to the content.
type manifest struct {
	Format   int    `json:"format"`
	Language string `json:"language"`
	manifestModule
	Agents map[string]manifestAgent `json:"agents"`
	// all libraries by path, including the libraries of libraries; the path is relative to the
	// directory of the module
	Libraries map[string]manifestModule `json:"libraries,omitempty"`
}

// manifestModule lists the files of a module, and what file(), env() and similar functions have
// read for it.
type manifestModule struct {
	File  string            `json:"file,omitempty"`  // name of the only file, if the module is a single file
	Files map[string]string `json:"files"`           // sha256 of each source file, by name
	Reads map[string]string `json:"reads,omitempty"` // sha256 of each file that file() and similar functions read, by name
	// sha256 of the value of each environment variable that env() read; nil = it was not set
	Env map[string]*string `json:"env,omitempty"`
	// FileSets holds the results of fileset(), by directory and then by pattern. The field Exists
	// holds the results of fileexists(), by name of the file.
	FileSets map[string]map[string][]string `json:"file_sets,omitempty"`
	Exists   map[string]bool                `json:"files_exist,omitempty"`
}

type manifestAgent struct {
	Plugin   string `json:"plugin"`
	Version  string `json:"version"`
	Checksum string `json:"checksum,omitempty"`
	Schema   string `json:"schema"` // sha256 of the schema as JSON
}

// stored is the form in which a definition is stored: the manifest, and the contents that
// belong to the checksums in the manifest.
type stored struct {
	Manifest manifest          `json:"manifest"`
	Blobs    map[string][]byte `json:"blobs"`
}

// seal sets two fields of d: `encoded`, which is the form in which d is stored, and `digest`,
// which is the sha256 of the manifest. It encrypts nothing. The parameter `agents` holds the
// binary of each agent, by the name of the agent block.
func (d *Definition) seal(agents map[string]AgentBinary) error {
	m := d.module
	s := stored{
		Manifest: manifest{Format: formatVersion, Language: syntax.LanguageVersion, Agents: map[string]manifestAgent{}, Libraries: map[string]manifestModule{}},
		Blobs:    map[string][]byte{},
	}
	s.Manifest.manifestModule = s.putModule(m)
	for name, lib := range m.Below {
		s.Manifest.Libraries[name] = s.putModule(lib)
	}
	for name, a := range m.Agents {
		bin := agents[name]
		schema, err := json.Marshal(bin.Schema)
		if err != nil {
			return fmt.Errorf("encode the schema of agent %q: %w", name, err)
		}
		s.Manifest.Agents[name] = manifestAgent{
			Plugin: a.Plugin, Version: bin.Version, Checksum: bin.Checksum, Schema: s.put(schema),
		}
	}
	man, err := json.Marshal(s.Manifest)
	if err != nil {
		return fmt.Errorf("encode the manifest: %w", err)
	}
	sum := sha256.Sum256(man)
	d.digest = hex.EncodeToString(sum[:])
	if d.encoded, err = json.Marshal(s); err != nil {
		return fmt.Errorf("encode the definition: %w", err)
	}
	return nil
}

// put adds a content to s.Blobs, and returns its sha256.
func (s *stored) put(data []byte) string {
	sum := sha256.Sum256(data)
	key := hex.EncodeToString(sum[:])
	s.Blobs[key] = data
	return key
}

// putModule adds to s.Blobs the files of a module, and the texts that file(), env() and
// similar functions have read for the module. It returns the module's entry in the
// manifest. This entry holds the sha256 of each file and text.
func (s *stored) putModule(m *decl.Module) manifestModule {
	out := manifestModule{File: m.File, Files: map[string]string{}, Reads: map[string]string{}, Env: map[string]*string{}, FileSets: m.Reads.Sets, Exists: m.Reads.Exists}
	for name, src := range m.Files {
		out.Files[name] = s.put(src)
	}
	for name, text := range m.Reads.Files {
		out.Reads[name] = s.put([]byte(text))
	}
	for name, value := range m.Reads.Env {
		out.Env[name] = nil
		if value != nil {
			key := s.put([]byte(*value))
			out.Env[name] = &key
		}
	}
	return out
}

// ErrCorrupt means that the bytes given to Decode are not a stored definition, or are damaged.
// Decode wraps ErrCorrupt, except if the language rules refuse the definition.
var ErrCorrupt = errors.New("dsl: not a stored definition")

// Decode reads a definition from the bytes that Encode returned. It needs neither files nor
// agents. It accepts every definition that Link has accepted, even if a newer rule refuses it.
// An error of Decode wraps ErrCorrupt, or a *diag.DiagnosticsError if Parse or Link finds errors in
// the definition.
func Decode(data []byte) (*Definition, error) {
	var s stored
	dec := json.NewDecoder(bytes.NewReader(data))
	if err := dec.Decode(&s); err != nil {
		return nil, fmt.Errorf("%w: %w", ErrCorrupt, err)
	}
	if s.Manifest.Format != formatVersion {
		return nil, fmt.Errorf("%w: format %d is not known to this engine", ErrCorrupt, s.Manifest.Format)
	}
	for key, blob := range s.Blobs {
		if sum := sha256.Sum256(blob); hex.EncodeToString(sum[:]) != key {
			return nil, fmt.Errorf("%w: blob %.12s does not match its checksum", ErrCorrupt, key)
		}
	}
	def, diags, err := s.link(false)
	if err == nil && diags.HasErrors() {
		def, diags, err = s.link(true)
	}
	switch {
	case err != nil:
		return nil, err
	case diags.HasErrors():
		return nil, fmt.Errorf("link the stored definition: %w", diags.Err())
	case def == nil:
		return nil, fmt.Errorf("%w: it cannot be linked", ErrCorrupt)
	}
	return def, nil
}

// link parses and links the stored definition again. If the parameter `older` is true, link does
// not apply rules that may be newer than the definition. This is necessary, because a run keeps its
// definition to its end: Decode must accept a definition that newer rules refuse.
func (s *stored) link(older bool) (*Definition, diag.Diagnostics, error) {
	main, agents, err := s.parts()
	if err != nil {
		return nil, nil, err
	}
	m, diags := decl.ParseStored(main, older)
	def, more := Link(&Module{m}, agents)
	return def, append(diags, more...), nil
}

// parts returns the agents, and the stored files of the module and its libraries. The error wraps
// ErrCorrupt if the content of a file is missing, or if a schema cannot be parsed.
func (s *stored) parts() (main decl.Stored, agents map[string]AgentBinary, err error) {
	if main, err = s.module(s.Manifest.manifestModule); err != nil {
		return decl.Stored{}, nil, err
	}
	main.Libraries = map[string]decl.Stored{}
	for name, lib := range s.Manifest.Libraries {
		if main.Libraries[name], err = s.module(lib); err != nil {
			return decl.Stored{}, nil, err
		}
	}
	agents, main.Agents = map[string]AgentBinary{}, map[string]bool{}
	for name, a := range s.Manifest.Agents {
		raw, err := s.blob(a.Schema)
		if err != nil {
			return decl.Stored{}, nil, err
		}
		var schema schema.Schema
		if err := json.Unmarshal(raw, &schema); err != nil {
			return decl.Stored{}, nil, fmt.Errorf("%w: schema of agent %q: %w", ErrCorrupt, name, err)
		}
		agents[name] = AgentBinary{Schema: schema, Version: a.Version, Checksum: a.Checksum}
		main.Agents[name] = true
	}
	return main, agents, nil
}

// blob returns a stored content by its sha256. The error wraps ErrCorrupt if the content is
// missing.
func (s *stored) blob(key string) ([]byte, error) {
	b, ok := s.Blobs[key]
	if !ok {
		return nil, fmt.Errorf("%w: blob %.12s is missing", ErrCorrupt, key)
	}
	return b, nil
}

// module returns the stored files of a module, and the stored results of file() and env(). The
// error wraps ErrCorrupt if a content is missing.
func (s *stored) module(m manifestModule) (out decl.Stored, err error) {
	out = decl.Stored{File: m.File, Files: map[string][]byte{}, Reads: functions.Reads{
		Files: map[string]string{}, Env: map[string]*string{}, Sets: m.FileSets, Exists: m.Exists,
	}}
	for name, key := range m.Files {
		if out.Files[name], err = s.blob(key); err != nil {
			return decl.Stored{}, err
		}
	}
	for name, key := range m.Reads {
		text, err := s.blob(key)
		if err != nil {
			return decl.Stored{}, err
		}
		out.Reads.Files[name] = string(text)
	}
	for name, key := range m.Env {
		out.Reads.Env[name] = nil
		if key != nil {
			text, err := s.blob(*key)
			if err != nil {
				return decl.Stored{}, err
			}
			value := string(text)
			out.Reads.Env[name] = &value
		}
	}
	return out, nil
}

// Sources returns the source files of the definition and of its libraries by name, as they were
// when the definition was linked. The caller must not change their bytes.
func (d *Definition) Sources() map[string][]byte {
	out := maps.Clone(d.module.Files)
	for _, lib := range d.module.Below {
		maps.Copy(out, lib.Files)
	}
	return out
}
