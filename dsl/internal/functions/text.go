package functions

import (
	"path"
	"regexp"
	"strings"

	"github.com/google/uuid"
	"github.com/zclconf/go-cty/cty"
	"github.com/zclconf/go-cty/cty/function"
)

// textFunction returns a function of the language that has one string argument. The parameter
// `impl` computes the result. The parameter `ret` is the type of the result, if the result is
// not a string.
func textFunction(param string, impl func(string) (cty.Value, error), ret ...cty.Type) function.Function {
	return function.New(&function.Spec{
		Params: []function.Parameter{{Name: param, Type: cty.String}},
		Type:   function.StaticReturnType(append(ret, cty.String)[0]),
		Impl:   func(args []cty.Value, _ cty.Type) (cty.Value, error) { return impl(args[0].AsString()) },
	})
}

// mapText returns a function of the language. The returned function has one string argument, and
// returns the result of `impl` for this argument. It cannot fail.
func mapText(impl func(string) string) function.Function {
	return textFunction("str", func(s string) (cty.Value, error) { return cty.StringVal(impl(s)), nil })
}

// textPair returns a function of the language. The returned function has two string arguments,
// whose names are the parameters `a` and `b`. The parameter `impl` computes its result, which has
// the type in the parameter `ret`.
func textPair(a, b string, ret cty.Type, impl func(x, y string) (cty.Value, error)) function.Function {
	return function.New(&function.Spec{
		Params: []function.Parameter{{Name: a, Type: cty.String}, {Name: b, Type: cty.String}},
		Type:   function.StaticReturnType(ret),
		Impl: func(args []cty.Value, _ cty.Type) (cty.Value, error) {
			return impl(args[0].AsString(), args[1].AsString())
		},
	})
}

var (
	startsWithFunc = textPair("str", "prefix", cty.Bool, func(s, p string) (cty.Value, error) {
		return cty.BoolVal(strings.HasPrefix(s, p)), nil
	})
	endsWithFunc = textPair("str", "suffix", cty.Bool, func(s, p string) (cty.Value, error) {
		return cty.BoolVal(strings.HasSuffix(s, p)), nil
	})
	strContainsFunc = textPair("str", "substr", cty.Bool, func(s, p string) (cty.Value, error) {
		return cty.BoolVal(strings.Contains(s, p)), nil
	})

	// These functions split paths at slashes on every operating system. So they return the same
	// result on every engine.
	basenameFunc = mapText(path.Base)
	dirnameFunc  = mapText(path.Dir)

	// md5 and sha1 serve to compare with hashes from other systems, not to protect data.
	md5Func          = mapText(hexMD5)
	sha1Func         = mapText(hexSHA1)
	sha256Func       = mapText(hexSHA256)
	sha512Func       = mapText(hexSHA512)
	base64sha256Func = mapText(base64SHA256)
	base64sha512Func = mapText(base64SHA512)

	uuidv5Func = textPair("namespace", "name", cty.String, func(space, name string) (cty.Value, error) {
		known := map[string]uuid.UUID{"dns": uuid.NameSpaceDNS, "url": uuid.NameSpaceURL, "oid": uuid.NameSpaceOID, "x500": uuid.NameSpaceX500}
		id, ok := known[space]
		if !ok {
			parsed, err := uuid.Parse(space)
			if err != nil {
				return cty.NilVal, function.NewArgErrorf(0, `namespace is a UUID, "dns", "url", "oid" or "x500"`)
			}
			id = parsed
		}
		return cty.StringVal(uuid.NewSHA1(id, []byte(name)).String()), nil
	})

	// replaceFunc treats its second argument as a regular expression if this argument begins and
	// ends with a slash, as in Terraform.
	replaceFunc = function.New(&function.Spec{
		Params: []function.Parameter{
			{Name: "str", Type: cty.String}, {Name: "substr", Type: cty.String}, {Name: "replace", Type: cty.String},
		},
		Type: function.StaticReturnType(cty.String),
		Impl: func(args []cty.Value, _ cty.Type) (cty.Value, error) {
			s, old, with := args[0].AsString(), args[1].AsString(), args[2].AsString()
			if len(old) > 2 && old[0] == '/' && old[len(old)-1] == '/' {
				re, err := regexp.Compile(old[1 : len(old)-1])
				if err != nil {
					return cty.NilVal, function.NewArgErrorf(1, "invalid regular expression: %w", err)
				}
				return cty.StringVal(re.ReplaceAllString(s, with)), nil
			}
			return cty.StringVal(strings.ReplaceAll(s, old, with)), nil
		},
	})
)
