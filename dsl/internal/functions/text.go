package functions

import (
	"crypto/md5"
	"crypto/sha1"
	"crypto/sha256"
	"crypto/sha512"
	"encoding/base64"
	"encoding/hex"
	"errors"
	"fmt"
	"net/url"
	"path"
	"regexp"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/google/uuid"
	"github.com/zclconf/go-cty/cty"
	"github.com/zclconf/go-cty/cty/function"
)

// textFunction makes a function of the language. This function has one string argument, and its
// result is the string that impl returns.
func textFunction(param string, impl func(string) (cty.Value, error)) function.Function {
	return function.New(&function.Spec{
		Params: []function.Parameter{{Name: param, Type: cty.String}},
		Type:   function.StaticReturnType(cty.String),
		Impl:   func(args []cty.Value, _ cty.Type) (cty.Value, error) { return impl(args[0].AsString()) },
	})
}

// mapText makes a function of the language. This function turns one string into another with impl,
// and cannot fail.
func mapText(impl func(string) string) function.Function {
	return textFunction("str", func(s string) (cty.Value, error) { return cty.StringVal(impl(s)), nil })
}

// textPair makes a function of the language. This function has two string arguments, whose names
// are the parameters a and b. impl computes its result, which has the type ret.
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

	urlEncodeFunc    = mapText(url.QueryEscape)
	base64EncodeFunc = mapText(func(s string) string { return base64.StdEncoding.EncodeToString([]byte(s)) })
	base64DecodeFunc = textFunction("str", func(s string) (cty.Value, error) {
		b, err := base64.StdEncoding.DecodeString(s)
		if err != nil {
			return cty.NilVal, errors.New("the text is not valid base64")
		}
		if !utf8.Valid(b) {
			return cty.NilVal, errors.New("the decoded bytes are not valid UTF-8 text")
		}
		return cty.StringVal(string(b)), nil
	})

	md5Func = mapText(func(s string) string { h := md5.Sum([]byte(s)); return hex.EncodeToString(h[:]) })
	// md5 and sha1 serve to compare with hashes from other systems, not to protect data.
	sha1Func         = mapText(func(s string) string { h := sha1.Sum([]byte(s)); return hex.EncodeToString(h[:]) })
	sha256Func       = mapText(func(s string) string { h := sha256.Sum256([]byte(s)); return hex.EncodeToString(h[:]) })
	sha512Func       = mapText(func(s string) string { h := sha512.Sum512([]byte(s)); return hex.EncodeToString(h[:]) })
	base64sha256Func = mapText(func(s string) string {
		h := sha256.Sum256([]byte(s))
		return base64.StdEncoding.EncodeToString(h[:])
	})
	base64sha512Func = mapText(func(s string) string {
		h := sha512.Sum512([]byte(s))
		return base64.StdEncoding.EncodeToString(h[:])
	})

	uuidv5Func = textPair("namespace", "name", cty.String, func(space, name string) (cty.Value, error) {
		known := map[string]uuid.UUID{"dns": uuid.NameSpaceDNS, "url": uuid.NameSpaceURL, "oid": uuid.NameSpaceOID, "x500": uuid.NameSpaceX500}
		id, ok := known[space]
		if !ok {
			parsed, err := uuid.Parse(space)
			if err != nil {
				return cty.NilVal, errors.New(`namespace is a UUID, "dns", "url", "oid" or "x500"`)
			}
			id = parsed
		}
		return cty.StringVal(uuid.NewSHA1(id, []byte(name)).String()), nil
	})

	timeCmpFunc = textPair("a", "b", cty.Number, func(a, b string) (cty.Value, error) {
		x, errA := time.Parse(time.RFC3339, a)
		y, errB := time.Parse(time.RFC3339, b)
		if errA != nil || errB != nil {
			return cty.NilVal, errors.New("both arguments are times as in RFC 3339")
		}
		return cty.NumberIntVal(int64(x.Compare(y))), nil
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
					return cty.NilVal, fmt.Errorf("invalid regular expression: %w", err)
				}
				return cty.StringVal(re.ReplaceAllString(s, with)), nil
			}
			return cty.StringVal(strings.ReplaceAll(s, old, with)), nil
		},
	})
)
