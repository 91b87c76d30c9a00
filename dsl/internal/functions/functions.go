package functions

import (
	"errors"
	"fmt"
	"maps"
	"slices"

	"github.com/hashicorp/hcl/v2/ext/tryfunc"
	"github.com/zclconf/go-cty/cty"
	"github.com/zclconf/go-cty/cty/function"
	"github.com/zclconf/go-cty/cty/function/stdlib"

	"github.com/saga-engine/engine/dsl/internal/sorted"
)

var errSecretPosition = errors.New("secret() cannot be evaluated here")

// Table returns the functions that a module can call, by name. The result of each function depends
// only on its arguments and on rd. For example, file() and env() return results that are already in
// rd: these functions read no file and no environment variable.
func Table(rd *Reads) map[string]function.Function {
	f := maps.Clone(pure)
	maps.Copy(f, readers(rd))
	f["secret"] = textFunction("ref", func(string) (cty.Value, error) { return cty.NilVal, errSecretPosition })
	f["templatestring"] = templateFunction("template", func(text string) (string, error) { return text, nil })
	return f
}

// Known reports whether the language has a function with this name.
func Known(name string) bool {
	_, ok := pure[name]
	return ok || slices.Contains(others, name)
}

// Names returns the names of all functions.
func Names() []string { return append(sorted.Keys(pure), others...) }

// pure holds the functions whose results depend only on their arguments, by name. No code
// changes this map.
var pure = pureFunctions()

func pureFunctions() map[string]function.Function {
	f := map[string]function.Function{
		// numbers
		"abs": stdlib.AbsoluteFunc, "ceil": stdlib.CeilFunc, "floor": stdlib.FloorFunc, "log": stdlib.LogFunc,
		"max": stdlib.MaxFunc, "min": stdlib.MinFunc, "parseint": stdlib.ParseIntFunc, "pow": stdlib.PowFunc,
		"signum": stdlib.SignumFunc, "sum": sumFunc,
		// strings
		"chomp": stdlib.ChompFunc, "format": limited(stdlib.FormatFunc), "formatlist": limited(stdlib.FormatListFunc),
		"indent": stdlib.IndentFunc, "join": stdlib.JoinFunc, "lower": stdlib.LowerFunc, "regex": stdlib.RegexFunc,
		"regexall": stdlib.RegexAllFunc, "replace": replaceFunc, "split": stdlib.SplitFunc,
		"strrev": stdlib.ReverseFunc, "substr": stdlib.SubstrFunc, "title": stdlib.TitleFunc, "trim": stdlib.TrimFunc,
		"trimprefix": stdlib.TrimPrefixFunc, "trimsuffix": stdlib.TrimSuffixFunc, "trimspace": stdlib.TrimSpaceFunc,
		"upper": stdlib.UpperFunc, "startswith": startsWithFunc, "endswith": endsWithFunc, "strcontains": strContainsFunc,
		"basename": basenameFunc, "dirname": dirnameFunc,
		// collections
		"alltrue": allTrueFunc, "anytrue": anyTrueFunc, "chunklist": stdlib.ChunklistFunc, "coalesce": coalesceFunc,
		"coalescelist": stdlib.CoalesceListFunc, "compact": stdlib.CompactFunc, "concat": stdlib.ConcatFunc,
		"contains": stdlib.ContainsFunc, "distinct": distinctFunc, "element": stdlib.ElementFunc,
		"flatten": stdlib.FlattenFunc, "index": indexFunc, "keys": stdlib.KeysFunc, "length": lengthFunc,
		"lookup": lookupFunc, "matchkeys": matchkeysFunc, "merge": stdlib.MergeFunc, "one": oneFunc,
		"range": stdlib.RangeFunc, "reverse": stdlib.ReverseListFunc, "setintersection": setIntersectionFunc,
		"setproduct": stdlib.SetProductFunc, "setsubtract": setSubtractFunc, "setunion": setUnionFunc,
		"slice": stdlib.SliceFunc, "sort": stdlib.SortFunc, "sort_by": sortByFunc, "transpose": transposeFunc, "values": stdlib.ValuesFunc,
		"zipmap": stdlib.ZipmapFunc, "deepmerge": deepMergeFunc,
		// encoding and hashes
		"base64decode": base64DecodeFunc, "base64encode": base64EncodeFunc, "csvdecode": stdlib.CSVDecodeFunc,
		"jsondecode": jsonDecodeFunc, "jsonencode": jsonEncodeFunc, "urlencode": urlEncodeFunc,
		"base64urlencode": base64URLEncodeFunc, "base64urldecode": base64URLDecodeFunc, "base64gzip": base64GzipFunc,
		"textencodebase64": textEncodeFunc, "textdecodebase64": textDecodeFunc, "urldecode": urlDecodeFunc,
		"yamldecode": yamlDecodeFunc, "yamlencode": yamlEncodeFunc,
		"md5": md5Func, "sha1": sha1Func, "sha256": sha256Func, "sha512": sha512Func,
		"base64sha256": base64sha256Func, "base64sha512": base64sha512Func, "uuidv5": uuidv5Func,
		// dates
		"formatdate": stdlib.FormatDateFunc, "timeadd": timeAddFunc, "timecmp": timeCmpFunc,
		"timediff": timeDiffFunc, "durationseconds": durationSecondsFunc,
		// networks
		"cidrcontains": cidrContainsFunc, "cidrhost": cidrHostFunc, "cidrnetmask": cidrNetmaskFunc, "cidrsubnet": cidrSubnetFunc, "cidrsubnets": cidrSubnetsFunc,
		// types and marks
		"can": tryfunc.CanFunc, "try": tryfunc.TryFunc, "sensitive": sensitiveFunc, "nonsensitive": nonsensitiveFunc,
		"issensitive": isSensitiveFunc, "type": typeFunc,
	}
	for name, ty := range map[string]cty.Type{
		"tobool": cty.Bool, "tonumber": cty.Number, "tostring": cty.String,
		"tolist": cty.List(cty.DynamicPseudoType), "tomap": cty.Map(cty.DynamicPseudoType), "toset": cty.Set(cty.DynamicPseudoType),
	} {
		f[name] = stdlib.MakeToFunc(ty)
	}
	return f
}

// limited returns a function that calls f, but refuses a format string with a width or precision of
// more than three digits, or with the sign * in their place. The library would allocate as many
// bytes as the width says.
func limited(f function.Function) function.Function {
	params := f.Params()
	return function.New(&function.Spec{
		Params: params, VarParam: f.VarParam(),
		Type: func(args []cty.Value) (cty.Type, error) { return f.ReturnTypeForValues(args) },
		Impl: func(args []cty.Value, _ cty.Type) (cty.Value, error) {
			if s := args[0]; s.IsKnown() && !s.IsNull() && s.Type() == cty.String && wideFormat(s.AsString()) {
				return cty.NilVal, fmt.Errorf("a width or precision may have at most three digits")
			}
			return f.Call(args)
		},
	})
}

func wideFormat(s string) bool {
	inVerb, digits := false, 0
	for _, c := range s {
		switch {
		case c == '%':
			inVerb, digits = !inVerb, 0
		case inVerb && c >= '0' && c <= '9':
			if digits++; digits > 3 {
				return true
			}
		case inVerb && (c == '.' || c == '[' || c == ']' || c == '+' || c == '-' || c == '#' || c == ' '):
			digits = 0
		case c == '*' && inVerb:
			return true
		default:
			inVerb = false
		}
	}
	return false
}
