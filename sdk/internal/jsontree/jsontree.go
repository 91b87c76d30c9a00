// Package jsontree converts JSON documents to trees and back, with exact numbers. A tree
// contains nil, bool, string, json.Number, []any and map[string]any.
//
// In: a document or a tree. Out: a tree or a document, or an error that says what is wrong.
// Errors name the path of a value but never show the value, because it may be sensitive. The key of
// a map is a part of the path. If the map is sensitive, Key and Unknown leave the key out.
package jsontree

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strings"
)

// Parse returns the tree of one JSON document. Numbers keep their exact form. Parse returns an
// error if `raw` is not JSON, or contains more than one document.
func Parse(raw []byte) (any, error) {
	dec := json.NewDecoder(bytes.NewReader(raw))
	dec.UseNumber()
	var tree any
	if err := dec.Decode(&tree); err != nil {
		return nil, err
	}
	if _, err := dec.Token(); !errors.Is(err, io.EOF) {
		return nil, errors.New("more than one JSON document")
	}
	return tree, nil
}

// Marshal returns a tree as JSON, with sorted object keys and without a final newline.
func Marshal(tree any) (json.RawMessage, error) {
	var buf bytes.Buffer
	enc := json.NewEncoder(&buf)
	enc.SetEscapeHTML(false)
	if err := enc.Encode(tree); err != nil {
		return nil, err
	}
	return bytes.TrimRight(buf.Bytes(), "\n"), nil
}

// Want returns nil if ok is true. Otherwise it returns an error which says that the value at
// `path` has the wrong kind, such as "lines[2].qty: must be a number, not a string". The
// parameter `want` names the right kind, and the parameter `tree` is the value. An empty path
// means the whole document.
func Want(ok bool, path, want string, tree any) error {
	if ok {
		return nil
	}
	if path == "" {
		return fmt.Errorf("must be %s, not %s", want, kind(tree))
	}
	return fmt.Errorf("%s: must be %s, not %s", path, want, kind(tree))
}

func kind(tree any) string {
	switch tree.(type) {
	case nil:
		return "null"
	case bool:
		return "a boolean"
	case string:
		return "a string"
	case json.Number:
		return "a number"
	case []any:
		return "a list"
	}
	return "an object"
}

// Join returns the path of the attribute `name` of the object whose path is the parameter `path`.
func Join(path, name string) string {
	if path == "" {
		return name
	}
	return path + "." + name
}

// Key returns the path of the element with this key of the map whose path is the parameter `path`.
// If `hide` is true, the result has "…" instead of the key, because the map is sensitive.
func Key(path, key string, hide bool) string {
	if hide {
		return path + "[…]"
	}
	return fmt.Sprintf("%s[%q]", path, key)
}

// Unknown returns an error which says that the object at `path` has an attribute that its type does
// not have. If `hide` is true, the error does not show the name of the attribute, because the
// object is sensitive.
func Unknown(path, name string, hide bool) error {
	if hide {
		return fmt.Errorf("%s: an attribute is not known", path)
	}
	return fmt.Errorf("%s: is not known", Join(path, name))
}

// OneOf returns nil if the tree is null or is equal to one of the allowed scalars. It also returns
// nil if the parameter `allowed` is empty. In all other cases it returns an error that lists the
// allowed scalars. The parameter `raw` contains the same scalars as JSON, for the text of the
// error.
func OneOf(tree any, allowed []any, raw []json.RawMessage) error {
	if len(allowed) == 0 || tree == nil {
		return nil
	}
	words := make([]string, 0, len(allowed))
	for i, a := range allowed {
		if sameScalar(a, tree) {
			return nil
		}
		words = append(words, string(raw[i]))
	}
	return fmt.Errorf("must be one of %s", strings.Join(words, ", "))
}

// sameScalar reports whether two scalars are equal. 1 and 1.0 are the same number.
func sameScalar(a, b any) bool {
	x, okX := a.(json.Number)
	y, okY := b.(json.Number)
	if okX && okY {
		f, errF := x.Float64()
		g, errG := y.Float64()
		return x == y || errF == nil && errG == nil && f == g
	}
	return a == b
}
