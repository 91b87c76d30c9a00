package jsonscan_test

import (
	"bytes"
	"encoding/json"
	"errors"
	"io"
	"reflect"
	"strings"
	"testing"

	"github.com/saga-engine/engine/sdk/jsonscan"
)

// scan reads a whole document with the method that the test is about.
func scan(doc string, read func(*jsonscan.Scanner) bool) (ok bool, rest string) {
	s := jsonscan.Scanner{Src: []byte(doc)}
	ok = read(&s)
	return ok, doc[s.Pos:]
}

func TestNumber(t *testing.T) {
	for _, tt := range []struct {
		doc, want, rest string // want "" = refused
	}{
		{"0", "0", ""}, {"-0", "-0", ""}, {"12", "12", ""}, {" \n\t\r7,", "7", ","}, {"1.50", "1.50", ""}, {"1e9", "1e9", ""},
		{"1E+9]", "1E+9", "]"}, {"-1.5e-3}", "-1.5e-3", "}"}, {"10 ", "10", " "}, {"3x", "3", "x"},
		{"01", "", ""}, {"-01", "", ""}, {"-", "", ""}, {"+1", "", ""}, {".5", "", ""}, {"1.", "", ""}, {"1e", "", ""}, {"1e+", "", ""},
		{"NaN", "", ""}, {"", "", ""}, {"x", "", ""}, {"\xff", "", ""},
	} {
		s := jsonscan.Scanner{Src: []byte(tt.doc)}
		raw, ok := s.Number()
		if string(raw) != tt.want || ok != (tt.want != "") {
			t.Errorf("Number(%q) = %q, %t; want %q", tt.doc, raw, ok, tt.want)
		}
		if ok && tt.doc[s.Pos:] != tt.rest {
			t.Errorf("Number(%q) leaves %q, want %q", tt.doc, tt.doc[s.Pos:], tt.rest)
		}
	}
}

// Plain texts are their own value. All others are decoded, or refused.
func TestText(t *testing.T) {
	for _, tt := range []struct {
		doc   string
		plain bool
		want  string // value
		bad   bool
	}{
		{doc: `"a"`, plain: true, want: "a"}, {doc: ` "" `, plain: true}, {doc: `"a b~"`, plain: true, want: "a b~"},
		{doc: `"\n"`, want: "\n"}, {doc: `"\u0041\/"`, want: "A/"}, {doc: `"é"`, want: "é"}, {doc: `"\ud83d\ude00"`, want: "😀"},
		{doc: "\"\x7f\"", want: "\x7f"}, {doc: `"\\\""`, want: `\"`},
		{doc: `"`, bad: true}, {doc: `"a`, bad: true}, {doc: `"\`, bad: true}, {doc: `"\x"`, bad: true}, {doc: `"\u12"`, bad: true}, {doc: `"\u12g4"`, bad: true},
		{doc: "\"\n\"", bad: true}, {doc: "\"\x00\"", bad: true}, {doc: "a", bad: true}, {doc: "", bad: true},
	} {
		s := jsonscan.Scanner{Src: []byte(tt.doc)}
		raw, plain, ok := s.Text()
		if ok == tt.bad || ok && plain != tt.plain {
			t.Errorf("Text(%q) = %q, plain %t, %t; want plain %t, %t", tt.doc, raw, plain, ok, tt.plain, !tt.bad)
		}
		again := jsonscan.Scanner{Src: []byte(tt.doc)}
		if got, ok := again.String(); ok == tt.bad || ok && got != tt.want {
			t.Errorf("String(%q) = %q, %t; want %q", tt.doc, got, ok, tt.want)
		}
	}
}

// A list or an object ends at its bracket, and at the first element that the caller
// refuses.
func TestListAndObject(t *testing.T) {
	for _, tt := range []struct {
		doc  string
		ok   bool
		rest string
	}{
		{"[]", true, ""}, {" [ 1 , 2 ] x", true, " x"}, {"[1,]", false, ""}, {"[1 2]", false, ""}, {"[1", false, ""}, {"[,1]", false, ""}, {"{}", false, ""}, {"", false, ""},
	} {
		ok, rest := scan(tt.doc, func(s *jsonscan.Scanner) bool { return s.List(s.Skip) })
		if ok != tt.ok || ok && rest != tt.rest {
			t.Errorf("List(%q) = %t, leaves %q; want %t, %q", tt.doc, ok, rest, tt.ok, tt.rest)
		}
	}
	for _, tt := range []struct {
		doc  string
		keys string
		ok   bool
	}{
		{"{}", "", true}, {`{"a":1,"b":[2]}`, "a b", true}, {` { "a" : 1 } `, "a", true}, {`{"a":1,"a":2}`, "a a", true},
		{`{"a":1,}`, "", false}, {`{"a" 1}`, "", false}, {`{a:1}`, "", false}, {`{"a":}`, "", false}, {`{"\u0061":1}`, "", false}, {`{"a":1`, "", false}, {`[]`, "", false},
	} {
		var keys []string
		ok, _ := scan(tt.doc, func(s *jsonscan.Scanner) bool {
			return s.Object(func(key []byte) bool { keys = append(keys, string(key)); return s.Skip() })
		})
		if ok != tt.ok || ok && strings.Join(keys, " ") != tt.keys {
			t.Errorf("Object(%q) = %t with keys %q; want %t, %q", tt.doc, ok, keys, tt.ok, tt.keys)
		}
	}
	if ok, _ := scan(`{"a":1,"b":2}`, func(s *jsonscan.Scanner) bool {
		return s.Object(func(key []byte) bool { return string(key) != "b" && s.Skip() })
	}); ok {
		t.Error("an object is read although the caller has refused a key")
	}
}

func TestSmallParts(t *testing.T) {
	s := jsonscan.Scanner{Src: []byte(" \t{ null")}
	if c := s.Peek(); c != '{' || s.Take('[') || !s.Take('{') || s.End() || s.Word("true") || !s.Word("null") || !s.End() || s.Peek() != 0 || s.Take(0) {
		t.Errorf("the scanner has come to byte %d, peek was %q", s.Pos, c)
	}
}

// A document may be nested up to MaxDepth.
func TestDepth(t *testing.T) {
	nested := func(n int) string { return strings.Repeat("[", n) + strings.Repeat("]", n) }
	for n, want := range map[int]bool{jsonscan.MaxDepth: true, jsonscan.MaxDepth + 1: false} {
		if ok, _ := scan(nested(n), (*jsonscan.Scanner).Skip); ok != want {
			t.Errorf("Skip of %d nested lists = %t, want %t", n, ok, want)
		}
		if ok, _ := scan(nested(n), func(s *jsonscan.Scanner) bool { _, ok := s.Tree(); return ok }); ok != want {
			t.Errorf("Tree of %d nested lists = %t, want %t", n, ok, want)
		}
	}
	if ok, _ := scan("["+strings.Repeat(nested(2)+",", 200)+"1]", (*jsonscan.Scanner).Skip); !ok {
		t.Error("many short lists after one another count as nested")
	}
}

// FuzzTree: what Tree reads is what encoding/json reads, and Skip accepts it too.
func FuzzTree(f *testing.F) {
	for _, s := range []string{
		`{"a":[1,2.50,{"b":null}],"c":"x\u00e9","d":true,"e":false}`, `[]`, `""`, `-0.0e1`, `{"a":1} x`, `[1,]`, `nul`, "\xff", `"\ud800"`, `{"a":{"a":{}}}`, ` 1 `, `{"é":1}`,
	} {
		f.Add([]byte(s))
	}
	f.Fuzz(func(t *testing.T, raw []byte) {
		s := jsonscan.Scanner{Src: raw}
		got, ok := s.Tree()
		if ok = ok && s.End(); !ok {
			return
		}
		dec := json.NewDecoder(bytes.NewReader(raw))
		dec.UseNumber()
		var want any
		if err := dec.Decode(&want); err != nil || !reflect.DeepEqual(got, want) {
			t.Fatalf("%q is read as %#v; encoding/json reads %#v, %v", raw, got, want, err)
		}
		if _, err := dec.Token(); !errors.Is(err, io.EOF) {
			t.Fatalf("%q is read as one document", raw)
		}
		skip := jsonscan.Scanner{Src: raw}
		if !skip.Skip() || !skip.End() {
			t.Fatalf("%q is read by Tree and refused by Skip", raw)
		}
	})
}
