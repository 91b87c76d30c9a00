package dsl

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"strings"
	"testing"
	"testing/fstest"

	"github.com/rogpeppe/go-internal/txtar"
)

// libraryFS returns files in which the module in orders/ uses an agent of the library in shared/.
func libraryFS() fstest.MapFS {
	fsys := fstest.MapFS{}
	for name, text := range map[string]string{
		"orders/a.hcl":    "library \"pay\" { source = \"../shared\" }\nvariable \"region\" { default = \"of the run\" }\n" + chargeBy("pay"),
		"shared/pay.hcl":  "variable \"region\" { default = env(\"REGION\") }\nlocals { key = \"${file(\"key\")}!\" }\n" + shopBlock,
		"shared/key":      "k1",
		"shared/file.txt": "no part of the library",
	} {
		fsys[name] = &fstest.MapFile{Data: []byte(text)}
	}
	return fsys
}

const shopBlock = "agent \"shop\" {\n  plugin = \"payment\"\n  config {\n    api_key = local.key\n    region = var.region\n  }\n}\n"

// chargeBy returns a workflow that calls the agent shop of a library.
func chargeBy(library string) string {
	return fmt.Sprintf("workflow \"w\" {\n  deadline = \"1h\"\n  step \"s\" {\n    action = library.%s.agent.shop.charge\n    input { amount = 1 }\n  }\n}\n", library)
}

// parseHome parses and links the module in the directory home of root. Libraries may be anywhere
// in root.
func parseHome(t *testing.T, root fs.FS, home string) (*Definition, string) {
	t.Helper()
	own, err := fs.Sub(root, home)
	if err != nil {
		t.Fatal(err)
	}
	m, diags := Parse(own, ParseOptions{Env: testEnv, Root: root, Home: home})
	def, more := Link(m, usedAgents(m))
	text := ""
	for _, d := range append(diags, more...) {
		text += fmt.Sprintf("%s: %s: %s\n", d.Range.File, d.Summary, d.Detail)
	}
	return def, text
}

// TestLibraryConfig: the configuration of a library's agent uses the variables, locals and files
// of the library, also if a run has a variable with the same name, and also in a stored definition.
func TestLibraryConfig(t *testing.T) {
	def, text := parseHome(t, libraryFS(), "orders")
	if def == nil {
		t.Fatal(text)
	}
	back, err := Decode(append([]byte(nil), def.Encode()...))
	if err != nil {
		t.Fatal(err)
	}
	if back.Digest() != def.Digest() {
		t.Errorf("digest %s became %s", def.Digest(), back.Digest())
	}
	for _, d := range []*Definition{def, back} {
		w := d.Workflow("w")
		vars, diags := w.Bind([]Assignment{{Name: "region", Text: "us", Source: "--var"}})
		if diags.HasErrors() {
			t.Fatal(diags.Err())
		}
		if do := w.Steps[0].Do; do.Agent != "pay.shop" || do.Name != "charge" || w.Agents["pay.shop"].Plugin != "payment" {
			t.Errorf("the step calls %s.%s", do.Agent, do.Name)
		}
		got, err := w.Agents["pay.shop"].Config(&Scope{Vars: vars})
		if err != nil || string(got.JSON()) != `{"api_key":"k1!","region":"eu"}` {
			t.Errorf("config %s, %v", got.JSON(), err)
		}
		if src := d.Sources(); len(src) != 2 || src["../shared/pay.hcl"] == nil || src["a.hcl"] == nil {
			t.Errorf("%d sources", len(src))
		}
		if len(w.Variables) != 1 {
			t.Errorf("the workflow has the variables %v", w.Variables)
		}
	}
}

// TestLibraryAgents: a module needs the binaries of the agents that it uses, and of no other agent
// of a library. An undo that the schema names belongs to the same agent.
func TestLibraryAgents(t *testing.T) {
	a, err := txtar.ParseFile("testdata/valid/library.txtar")
	if err != nil {
		t.Fatal(err)
	}
	m, diags := Parse(archiveFS(a), ParseOptions{Env: testEnv})
	if diags.HasErrors() {
		t.Fatal(diags.Err())
	}
	var got []string
	for _, use := range m.Agents() {
		got = append(got, use.Name+"="+use.Plugin+"@"+use.Where.File)
	}
	want := "again.shop=payment@lib/pay/pay.hcl desk.stock=inventory@lib/desk.hcl json.web=http@lib/api.hcl.json pay.shop=payment@lib/pay/pay.hcl"
	if strings.Join(got, " ") != want {
		t.Errorf("agents %q", got)
	}
	def, diags := Link(m, usedAgents(m))
	if def == nil {
		t.Fatal(diags.Err())
	}
	if names := def.Names(); len(names) != 1 {
		t.Errorf("workflows %q: those of a library do not belong to the module", names)
	}
	steps := def.Workflow("w").Steps
	if got := def.Workflow("w").Agents["pay.shop"]; got.MaxConcurrency != 8080 {
		t.Errorf("agent %+v", got)
	}
	if do := steps[0].Undo.Do; do.Agent != "again.shop" {
		t.Errorf("the written undo calls %s.%s", do.Agent, do.Name)
	}
	if do := steps[1].Undo.Do; do.Agent != "desk.stock" || do.Name != "release" {
		t.Errorf("the declared undo calls %s.%s", do.Agent, do.Name)
	}
}

// TestLibrarySimilar: an agent without a block is compared with the blocks of the module, because
// the name of a library's agent would be no help.
func TestLibrarySimilar(t *testing.T) {
	fsys := libraryFS()
	fsys["orders/b.hcl"] = &fstest.MapFile{Data: []byte("workflow \"v\" {\n  step \"s\" { action = agent.pay_shop.charge }\n}\n")}
	own, err := fs.Sub(fsys, "orders")
	if err != nil {
		t.Fatal(err)
	}
	m, _ := Parse(own, ParseOptions{Root: fsys, Home: "orders"})
	uses := m.Agents()
	if len(uses) != 2 || uses[1].Name != "pay_shop" || uses[1].Similar != "" {
		t.Errorf("agents %+v", uses)
	}
}

// TestLibraryDigest: whatever the library brings into a run is part of the digest; where the
// directories are is not.
func TestLibraryDigest(t *testing.T) {
	digest := func(home string, change func(fstest.MapFS)) string {
		t.Helper()
		fsys := libraryFS()
		change(fsys)
		def, text := parseHome(t, fsys, home)
		if def == nil {
			t.Fatal(text)
		}
		return def.Digest()
	}
	put := func(name, text string) func(fstest.MapFS) {
		return func(fsys fstest.MapFS) { fsys[name] = &fstest.MapFile{Data: []byte(text)} }
	}
	want := digest("orders", func(fstest.MapFS) {})
	for name, change := range map[string]func(fstest.MapFS){
		"another file": put("shared/file.txt", "changed"),
		"values":       put("shared/x.auto.vars.hcl", "region = \"us\"\n"),
		"!source":      func(fsys fstest.MapFS) { fsys["shared/pay.hcl"].Data = append(fsys["shared/pay.hcl"].Data, '\n') },
		"!new source":  put("shared/more.hcl", ""),
		"!file()":      put("shared/key", "k2"),
	} {
		if got := digest("orders", change); (got == want) == strings.HasPrefix(name, "!") {
			t.Errorf("%s: digest %.8s, without it %.8s", name, got, want)
		}
	}
	moved := digest("deep/down/orders", func(fsys fstest.MapFS) {
		for name, f := range libraryFS() {
			fsys["deep/down/"+name] = f
		}
	})
	if moved != want {
		t.Errorf("digest %.8s in another directory, %.8s before", moved, want)
	}
}

// TestDigestWithoutLibraries: the manifest of a module without libraries is the one that engines
// without libraries wrote, so its digest is the same.
func TestDigestWithoutLibraries(t *testing.T) {
	src := "locals { x = \"${file(\"f\")}${env(\"REGION\")}\" }\nworkflow \"w\" {\n  deadline = \"1h\"\n  step \"s\" {\n    action = agent.mock.call\n    input { value = local.x }\n  }\n}\n"
	def, diags := parseAndLink(fstest.MapFS{"a.hcl": {Data: []byte(src)}, "f": {Data: []byte("text")}})
	if def == nil {
		t.Fatal(diags.Err())
	}
	schema, err := json.Marshal(testAgents()["mock"].Schema)
	if err != nil {
		t.Fatal(err)
	}
	sum := func(text string) string {
		s := sha256.Sum256([]byte(text))
		return hex.EncodeToString(s[:])
	}
	manifest := fmt.Sprintf(`{"format":1,"language":"1","files":{"a.hcl":%q},"reads":{"f":%q},"env":{"REGION":%q},"agents":{"mock":{"plugin":"mock","version":"1.0.0","schema":%q}}}`,
		sum(src), sum("text"), sum("eu"), sum(string(schema)))
	if !bytes.Contains(def.Encode(), []byte(manifest)) {
		t.Errorf("the stored form does not hold %s", manifest)
	}
	if def.Digest() != sum(manifest) {
		t.Errorf("digest %s, want %s", def.Digest(), sum(manifest))
	}
}

// TestDecodeWithoutLibrary: a stored definition whose library is missing is damaged, and says so.
func TestDecodeWithoutLibrary(t *testing.T) {
	def, text := parseHome(t, libraryFS(), "orders")
	if def == nil {
		t.Fatal(text)
	}
	var s stored
	if err := json.Unmarshal(def.Encode(), &s); err != nil {
		t.Fatal(err)
	}
	delete(s.Manifest.Libraries, "../shared")
	cut, err := json.Marshal(s)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := Decode(cut); err == nil || !strings.Contains(err.Error(), `the definition does not hold "../shared"`) {
		t.Errorf("Decode: %v", err)
	}
	if err := json.Unmarshal(def.Encode(), &s); err != nil {
		t.Fatal(err)
	}
	delete(s.Blobs, s.Manifest.Libraries["../shared"].Files["../shared/pay.hcl"])
	if cut, err = json.Marshal(s); err != nil {
		t.Fatal(err)
	}
	if _, err := Decode(cut); err == nil || !strings.Contains(err.Error(), "is missing") {
		t.Errorf("Decode: %v", err)
	}
}

// openedFS counts how often each file is opened.
type openedFS struct {
	fs.FS
	count map[string]int
}

func (f openedFS) Open(name string) (fs.File, error) {
	f.count[name]++
	return f.FS.Open(name)
}

// TestLibraryReadOnce: three blocks with one source read its files as often as one block does.
func TestLibraryReadOnce(t *testing.T) {
	opened := func(change func(fstest.MapFS)) int {
		files := libraryFS()
		change(files)
		fsys := openedFS{files, map[string]int{}}
		def, text := parseHome(t, fsys, "orders")
		if def == nil {
			t.Fatal(text)
		}
		return fsys.count["shared/pay.hcl"]
	}
	once := opened(func(fstest.MapFS) {})
	thrice := opened(func(files fstest.MapFS) {
		files["orders/b.hcl"] = &fstest.MapFile{Data: []byte("library \"two\" { source = \"./../shared/\" }\nlibrary \"nested\" { source = \"./in\" }\n")}
		files["orders/in/c.hcl"] = &fstest.MapFile{Data: []byte("library \"three\" { source = \"../../shared\" }\n")}
	})
	if once == 0 || thrice != once {
		t.Errorf("the file of the library was opened %d times for one block, %d times for three", once, thrice)
	}
}

// TestLibraryDepth: a library that was read near the module counts with its own libraries if it is
// used again far from the module.
func TestLibraryDepth(t *testing.T) {
	for last, want := range map[int]bool{4: true, 5: false} {
		fsys := fstest.MapFS{"a.hcl": {Data: []byte("library \"near\" { source = \"./x4\" }\nlibrary \"far\" { source = \"./y1\" }\n")}}
		put := func(name, source string) {
			fsys[name+"/a.hcl"] = &fstest.MapFile{Data: []byte(fmt.Sprintf("library \"l\" { source = %q }\n", "../"+source))}
		}
		for i := 4; i > 1; i-- {
			put(fmt.Sprintf("x%d", i), fmt.Sprintf("x%d", i-1))
		}
		fsys["x1/a.hcl"] = &fstest.MapFile{Data: []byte("locals { x = 1 }\n")}
		for i := 1; i < last; i++ {
			put(fmt.Sprintf("y%d", i), fmt.Sprintf("y%d", i+1))
		}
		put(fmt.Sprintf("y%d", last), "x4")
		def, diags := parseAndLink(fsys)
		if (def != nil) != want || !want && diags[0].Summary != "Libraries nested too deep" {
			t.Errorf("%d libraries before a library of 4 levels: %v", last, diags.Err())
		}
	}
}

// TestLibraryPlaces: a library stays in the directory that the command allows, its files stay in
// the library, and neither reads the directory of the engine's state.
func TestLibraryPlaces(t *testing.T) {
	dir := t.TempDir()
	for name, text := range map[string]string{
		"out/secret.hcl": "locals { x = \"swordfish\" }\n", "out/secret.txt": "swordfish",
		"work/shared/pay.hcl": "locals { key = file(\"key\") }\nvariable \"region\" { default = null }\n" + shopBlock, "work/shared/key": "k",
		"work/.engine/state.hcl": "locals { x = \"swordfish\" }\n",
		"work/upward/a.hcl":      "locals { x = file(\"../shared/key\") }\n",
		"work/readlink/a.hcl":    "locals { x = file(\"link.txt\") }\n",
		"work/linked/a.hcl":      "locals { x = 1 }\n",
		"work/empty/a.txt":       "",
	} {
		full := filepath.Join(dir, filepath.FromSlash(name))
		if err := os.MkdirAll(filepath.Dir(full), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(full, []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	for link, target := range map[string]string{
		"work/way": "shared", "work/gone": "../out", "work/linked/b.hcl": "../shared/pay.hcl", "work/readlink/link.txt": "../shared/key", "work/state": ".engine",
	} {
		if err := os.Symlink(filepath.FromSlash(target), filepath.Join(dir, filepath.FromSlash(link))); err != nil {
			t.Fatal(err)
		}
	}
	for source, want := range map[string]string{
		"../shared":         "",
		"../shared/pay.hcl": "",
		"../way":            "",
		"../../out":         `a.hcl: Cannot read library "pay": source: "../../out" is outside of the directory`,
		"../gone":           `a.hcl: Cannot read library "pay": source: a symbolic link in "../gone" leads out of the directory`,
		"../linked":         `a.hcl: Cannot read library "pay": source: "../linked/b.hcl" is a symbolic link that leads out of its directory`,
		"../.engine":        `a.hcl: Cannot read library "pay": source: the directory .engine holds the engine's state`,
		"../state":          `a.hcl: Cannot read library "pay": source: the directory .engine holds the engine's state`,
		"../upward":         `../upward/a.hcl: Cannot read file: file("../shared/key"): the path must be relative and stay inside`,
		"../readlink":       `../readlink/a.hcl: Cannot read file: file("link.txt"): a symbolic link leads out of the module's directory`,
		"../empty":          `a.hcl: Cannot read library "pay": source: the directory "../empty" holds no *.hcl file`,
		"../shared/no.hcl":  `a.hcl: Cannot read library "pay": source: "../shared/no.hcl" does not exist`,
	} {
		home := filepath.Join(dir, "work", "orders")
		if err := os.MkdirAll(home, 0o755); err != nil {
			t.Fatal(err)
		}
		src := fmt.Sprintf("library \"pay\" { source = %q }\n", source) + chargeBy("pay")
		if err := os.WriteFile(filepath.Join(home, "a.hcl"), []byte(src), 0o644); err != nil {
			t.Fatal(err)
		}
		def, text := parseHome(t, os.DirFS(filepath.Join(dir, "work")), "orders")
		if (def != nil) != (want == "") || !strings.Contains(text, want) || strings.Contains(text, "swordfish") {
			t.Errorf("%s: linked=%t, want %q, got\n%s", source, def != nil, want, text)
		}
	}
}

// TestLibrarySize: the libraries of a module are limited together, so that many of them are no way
// around the limit of one module.
func TestLibrarySize(t *testing.T) {
	comment := append(bytes.Repeat([]byte("#"), 1<<20-1), '\n')
	for name, files := range map[string][2]int{"one library": {17, 0}, "two libraries": {2, 15}} {
		fsys := fstest.MapFS{"a.hcl": {Data: []byte("library \"one\" { source = \"./one\" }\nlibrary \"two\" { source = \"./two\" }\n")}}
		for i, lib := range []string{"one", "two"} {
			fsys[path.Join(lib, "x.hcl")] = &fstest.MapFile{Data: []byte("locals { x = 1 }\n")}
			for k := range files[i] {
				fsys[path.Join(lib, fmt.Sprintf("%d.hcl", k))] = &fstest.MapFile{Data: comment}
			}
		}
		_, diags := parseAndLink(fsys)
		if err := diags.Err(); err == nil || !strings.Contains(err.Error(), "at most 16 MiB together") {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// TestLibraryInJSON: the JSON form has library blocks and their actions, too.
func TestLibraryInJSON(t *testing.T) {
	fsys := libraryFS()
	delete(fsys, "orders/a.hcl")
	fsys["orders/a.hcl.json"] = &fstest.MapFile{Data: []byte(`{"library": {"pay": {"source": "../shared"}}, "workflow": {"w": {"deadline": "1h",
		"step": {"s": {"action": "library.pay.agent.shop.charge", "input": {"amount": 1}}}}}}`)}
	def, text := parseHome(t, fsys, "orders")
	if def == nil || def.Workflow("w").Steps[0].Do.Agent != "pay.shop" {
		t.Error(text)
	}
}

// TestLibraryDeclaredAction: the input of an action that a library declares uses the variables of
// the library, also if the run has a variable with the same name, and also in a stored definition.
func TestLibraryDeclaredAction(t *testing.T) {
	fsys := libraryFS()
	action := "  action \"pay\" {\n    uses = \"charge\"\n    arguments = object({ sum = number })\n    compensated_by = \"refund\"\n    input {\n      amount = args.sum\n      email = var.region\n    }\n  }\n}\n"
	fsys["shared/pay.hcl"].Data = append(bytes.TrimSuffix(fsys["shared/pay.hcl"].Data, []byte("}\n")), action...)
	home := string(fsys["orders/a.hcl"].Data)
	home = strings.NewReplacer("shop.charge", "shop.pay", "amount = 1", "sum = 2").Replace(home)
	fsys["orders/a.hcl"].Data = []byte(strings.Replace(home, "    action =", "    compensation = \"none\"\n    action =", 1))
	def, text := parseHome(t, fsys, "orders")
	if def == nil {
		t.Fatal(text)
	}
	back, err := Decode(def.Encode())
	if err != nil {
		t.Fatal(err)
	}
	for _, d := range []*Definition{def, back} {
		w := d.Workflow("w")
		vars, diags := w.Bind([]Assignment{{Name: "region", Text: "us", Source: "--var"}})
		if diags.HasErrors() {
			t.Fatal(diags.Err())
		}
		s := w.Steps[0]
		in, err := s.Input(&Scope{Vars: vars})
		if want := `{"amount":2,"currency":"eur","email":"eu"}`; err != nil || string(in.JSON()) != want || s.Do.Sent() != "charge" {
			t.Errorf("%s is called with %s, %v", s.Do.Sent(), in.JSON(), err)
		}
	}
}
