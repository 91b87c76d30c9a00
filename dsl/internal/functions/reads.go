package functions

import (
	"encoding/base64"
	"errors"

	"github.com/zclconf/go-cty/cty"
	"github.com/zclconf/go-cty/cty/function"

	"github.com/saga-engine/engine/dsl/internal/sorted"
)

// Reads holds the results of the functions that read files and the environment. The engine stores
// the results when it loads the module, so a stored definition needs neither files nor environment.
type Reads struct {
	Files  map[string]string              // content of each file, by name
	Env    map[string]*string             // value of each environment variable, by name; nil = not set
	Sets   map[string]map[string][]string // results of fileset, by directory and pattern
	Exists map[string]bool                // results of fileexists, by name
	// The next two fields hold values that functions return. The method Prepare can compute them
	// from the fields above, so a stored definition does not hold them.
	texts map[[2]string]cty.Value // results of the functions in fileTexts, by function and file
	sets  map[[2]string]cty.Value // results of fileset, by directory and pattern
}

// Literal holds the names of the functions that read files or the environment when the definition
// is loaded. The number says how many arguments, from the first one on, must be literal strings.
var Literal = literalArguments()

func literalArguments() map[string]int {
	out := map[string]int{"env": 1, "file": 1, "fileexists": 1, "fileset": 2, "templatefile": 1}
	for name := range fileTexts {
		out[name] = 1
	}
	return out
}

// fileTexts holds the functions that make a text from the content of a file.
var fileTexts = map[string]func(content string) string{
	"filebase64":       func(s string) string { return base64.StdEncoding.EncodeToString([]byte(s)) },
	"filebase64sha256": base64SHA256,
	"filebase64sha512": base64SHA512,
	"filemd5":          hexMD5,
	"filesha1":         hexSHA1,
	"filesha256":       hexSHA256,
	"filesha512":       hexSHA512,
}

// Prepare computes and keeps the result of a call, if the function is fileset or one of fileTexts.
// So the same call during a run need not process the file again, and costs the same for a small
// file and for a large one. For other functions Prepare keeps nothing.
func (rd *Reads) Prepare(name string, args []string) {
	if rd.texts == nil {
		rd.texts, rd.sets = map[[2]string]cty.Value{}, map[[2]string]cty.Value{}
	}
	if f, ok := fileTexts[name]; ok {
		rd.texts[[2]string{name, args[0]}] = cty.StringVal(f(rd.Files[args[0]]))
	}
	if name != "fileset" {
		return
	}
	set := cty.SetValEmpty(cty.String)
	if names := rd.Sets[args[0]][args[1]]; len(names) > 0 {
		values := make([]cty.Value, len(names))
		for i, file := range names {
			values[i] = cty.StringVal(file)
		}
		set = cty.SetVal(values)
	}
	rd.sets[[2]string{args[0], args[1]}] = set
}

var errNotRead = errors.New("the file was not read when the definition was loaded")

// fileText returns the content of a file that was read when the definition was loaded.
func (rd *Reads) fileText(name string) (string, error) {
	text, ok := rd.Files[name]
	if !ok {
		return "", errNotRead
	}
	return text, nil
}

// readers returns the functions whose results are in rd, by name.
func readers(rd *Reads) map[string]function.Function {
	out := map[string]function.Function{
		"file": textFunction("path", func(name string) (cty.Value, error) {
			text, err := rd.fileText(name)
			return cty.StringVal(text), err
		}),
		"env": textFunction("name", func(name string) (cty.Value, error) {
			if v := rd.Env[name]; v != nil {
				return cty.StringVal(*v), nil
			}
			return cty.NullVal(cty.String), nil
		}),
		"fileexists": textFunction("path", func(name string) (cty.Value, error) {
			exists, ok := rd.Exists[name]
			if !ok {
				return cty.NilVal, errNotRead
			}
			return cty.BoolVal(exists), nil
		}, cty.Bool),
		"fileset": textPair("path", "pattern", cty.Set(cty.String), func(dir, pattern string) (cty.Value, error) {
			return prepared(rd.sets, dir, pattern)
		}),
		"templatefile": templateFunction("path", rd.fileText),
	}
	for name := range fileTexts {
		out[name] = textFunction("path", func(path string) (cty.Value, error) { return prepared(rd.texts, name, path) })
	}
	return out
}

// prepared returns the value that Prepare has computed for the key {a, b}. It returns an error if
// there is no such value.
func prepared(values map[[2]string]cty.Value, a, b string) (cty.Value, error) {
	v, ok := values[[2]string{a, b}]
	if !ok {
		return cty.NilVal, errNotRead
	}
	return v, nil
}

// others holds the names of the functions that are not in the map `pure`.
var others = append(sorted.Keys(Literal), "secret", "templatestring")
