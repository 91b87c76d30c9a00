package lock

import (
	"encoding/hex"
	"fmt"
	"regexp"
	"sort"
	"strings"

	"github.com/hashicorp/hcl/v2"
	"github.com/hashicorp/hcl/v2/gohcl"
	"github.com/hashicorp/hcl/v2/hclsyntax"
	"github.com/hashicorp/hcl/v2/hclwrite"
	"github.com/zclconf/go-cty/cty"

	"github.com/saga-engine/engine/dsl/diag"
	"github.com/saga-engine/engine/dsl/internal/report"
	"github.com/saga-engine/engine/dsl/internal/syntax"
)

// File is the name of the lock file in a module's directory.
const File = ".engine.lock.hcl"

// A Lock says which agent binaries a module may use.
type Lock struct {
	Agents []Agent // sorted by name, each name once
}

// An Agent is the entry in a lock file about one agent.
type Agent struct {
	Name       string            // plugin name, as in engine-agent-NAME
	Version    string            // version that every engine uses
	Constraint string            // condition by which the version was chosen; "" = any version
	Source     string            // path of the binary, from the agent block; "" = the binary was installed
	Hashes     map[string]string // hex SHA-256 of the binary, by platform such as "linux_amd64"
}

// Agent returns the entry of the agent with this name. The result `ok` is false if the lock has
// no such entry.
func (l Lock) Agent(name string) (a Agent, ok bool) {
	for _, a := range l.Agents {
		if a.Name == name {
			return a, true
		}
	}
	return Agent{}, false
}

const lockHeader = `# Written by "engine init". Keep it with the module: it holds every engine to the
# same agents. "engine init --upgrade" chooses anew.
`

// Format returns the text of a lock file, with the agents sorted by name. Each
// hash has its own line, so that the changes of two people rarely conflict. Read
// parses this text.
func Format(l Lock) []byte {
	agents := append([]Agent(nil), l.Agents...)
	sort.Slice(agents, func(i, j int) bool { return agents[i].Name < agents[j].Name })
	var b strings.Builder
	b.WriteString(lockHeader)
	for _, a := range agents {
		fmt.Fprintf(&b, "\nagent %s {\n  version = %s\n", quoteHCL(a.Name), quoteHCL(a.Version))
		if a.Constraint != "" {
			fmt.Fprintf(&b, "  constraint = %s\n", quoteHCL(a.Constraint))
		}
		if a.Source != "" {
			fmt.Fprintf(&b, "  source = %s\n", quoteHCL(a.Source))
		}
		b.WriteString("  hashes = [\n")
		platforms := make([]string, 0, len(a.Hashes))
		for p := range a.Hashes {
			platforms = append(platforms, p)
		}
		sort.Strings(platforms)
		for _, p := range platforms {
			fmt.Fprintf(&b, "    %s,\n", quoteHCL(p+":"+hashPrefix+a.Hashes[p]))
		}
		b.WriteString("  ]\n}\n")
	}
	return hclwrite.Format([]byte(b.String()))
}

func quoteHCL(text string) string {
	return string(hclwrite.TokensForValue(cty.StringVal(text)).Bytes())
}

const hashPrefix = "sha256:"

var (
	lockedName = regexp.MustCompile(`^[a-z][a-z0-9_-]{0,62}$`)
	platform   = regexp.MustCompile(`^[a-z0-9]+_[a-z0-9]+$`)
)

// lockFile is the lock file as hcl decodes it.
type lockFile struct {
	Agents []lockBlock `hcl:"agent,block"`
}

type lockBlock struct {
	Name       string    `hcl:"name,label"`
	Version    string    `hcl:"version"`
	Constraint string    `hcl:"constraint,optional"`
	Source     string    `hcl:"source,optional"`
	Hashes     []string  `hcl:"hashes"`
	Range      hcl.Range `hcl:",def_range"`
}

// Read parses a lock file; filename is only for messages. An unknown block or argument is an
// error, because this engine must not ignore a rule that it does not know.
func Read(src []byte, filename string) (Lock, diag.Diagnostics) {
	var f lockFile
	r := readPlain(src, filename, &f)
	var l Lock
	seen := map[string]bool{}
	for _, b := range f.Agents {
		a := Agent{Name: b.Name, Version: b.Version, Constraint: b.Constraint, Source: b.Source, Hashes: map[string]string{}}
		switch {
		case !lockedName.MatchString(b.Name):
			r.Errorf(b.Range, "Invalid lock file", "%q cannot be the name of an agent.", b.Name)
		case seen[b.Name]:
			r.Errorf(b.Range, "Invalid lock file", "Agent %q is locked twice.", b.Name)
		case b.Version == "":
			r.Errorf(b.Range, "Invalid lock file", "Agent %q is locked to no version.", b.Name)
		}
		seen[b.Name] = true
		for _, h := range b.Hashes {
			p, sum, err := parseHash(h)
			switch _, twice := a.Hashes[p]; {
			case err != nil:
				r.Errorf(b.Range, "Invalid lock file", "Agent %q: %v.", b.Name, err)
			case twice:
				r.Errorf(b.Range, "Invalid lock file", "Agent %q has two hashes for %s.", b.Name, p)
			default:
				a.Hashes[p] = sum
			}
		}
		l.Agents = append(l.Agents, a)
	}
	sort.SliceStable(l.Agents, func(i, j int) bool { return l.Agents[i].Name < l.Agents[j].Name })
	diags := r.Finish()
	if diags.HasErrors() {
		return Lock{}, diags
	}
	return l, diags
}

// parseHash parses a hash such as "linux_amd64:sha256:…". It returns the platform, and the
// checksum as hex in small letters.
func parseHash(text string) (forPlatform, sum string, err error) {
	parts := strings.SplitN(text, ":", 2)
	if len(parts) == 2 && platform.MatchString(parts[0]) {
		if sum, ok := strings.CutPrefix(parts[1], hashPrefix); ok {
			if raw, err := hex.DecodeString(sum); err == nil && len(raw) == 32 {
				return parts[0], strings.ToLower(sum), nil
			}
		}
	}
	return "", "", fmt.Errorf("%q is not a hash such as linux_amd64:sha256:…", text)
}

// A UserConfig is a user's own configuration file.
type UserConfig struct {
	// DevOverrides maps the name of an agent to the path of a binary. The engine uses this
	// binary instead of the installed binary. The path may also be the directory of the binary.
	DevOverrides map[string]string
}

type userConfigFile struct {
	Overrides []struct {
		Body hcl.Body `hcl:",remain"`
	} `hcl:"dev_overrides,block"`
}

// ReadUserConfig parses a user's configuration file; filename is only for messages. It returns
// an empty UserConfig if the file has errors.
func ReadUserConfig(src []byte, filename string) (UserConfig, diag.Diagnostics) {
	var f userConfigFile
	r := readPlain(src, filename, &f)
	conf := UserConfig{DevOverrides: map[string]string{}}
	for _, o := range f.Overrides {
		attrs, diags := o.Body.JustAttributes()
		r.HCL(diags)
		for name, a := range attrs {
			v, diags := a.Expr.Value(nil)
			r.HCL(diags)
			switch {
			case diags.HasErrors():
			case !lockedName.MatchString(name):
				r.Errorf(a.NameRange, "Invalid agent name", "%q cannot be the name of an agent.", name)
			case v.IsNull() || !v.Type().Equals(cty.String) || v.AsString() == "":
				r.Errorf(a.Expr.Range(), "Invalid override", "The value must be the path of a binary or of its directory.")
			default:
				conf.DevOverrides[name] = v.AsString()
			}
		}
	}
	diags := r.Finish()
	if diags.HasErrors() {
		return UserConfig{}, diags
	}
	return conf, diags
}

// readPlain decodes a small file without expressions into out. First it checks the size and
// the nesting with syntax.Prescan, as for the source files of workflows. The returned Reporter
// holds all errors.
func readPlain(src []byte, filename string, out any) *report.Reporter {
	r := &report.Reporter{Sources: map[string][]byte{filename: src}, Blocks: report.BlockRanges{}}
	if d := syntax.Prescan(src, filename); d != nil {
		r.HCL(hcl.Diagnostics{d})
		return r
	}
	file, diags := hclsyntax.ParseConfig(src, filename, hcl.InitialPos)
	r.HCL(diags)
	if diags.HasErrors() {
		return r
	}
	if body, ok := file.Body.(*hclsyntax.Body); ok && !plain(r, body) {
		return r
	}
	r.HCL(gohcl.DecodeBody(file.Body, nil, out))
	return r
}

// plain returns false if a body has a loop, a splat, a condition, an operation with two operands or
// a template. It reports such an expression as an error, because the HCL library would evaluate it
// without a limit of time and memory. plain does not look for references and calls of functions:
// the HCL library refuses them later, because there is no evaluation context.
func plain(r *report.Reporter, body *hclsyntax.Body) bool {
	ok := true
	_ = hclsyntax.VisitAll(body, func(n hclsyntax.Node) hcl.Diagnostics { // the callback returns no diagnostics
		switch n := n.(type) {
		case *hclsyntax.ForExpr, *hclsyntax.SplatExpr, *hclsyntax.BinaryOpExpr, *hclsyntax.ConditionalExpr, *hclsyntax.TemplateWrapExpr, *hclsyntax.TemplateJoinExpr:
			ok = false
			r.Errorf(n.Range(), "Not a literal value", "This file holds plain values; it cannot compute any.")
		case *hclsyntax.TemplateExpr:
			if ok && len(n.Parts) > 1 {
				ok = false
				r.Errorf(n.Range(), "Not a literal value", "This file holds plain values; it cannot compute any.")
			}
		}
		return nil
	})
	return ok
}
