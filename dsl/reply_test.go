package dsl

import (
	"bytes"
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/zclconf/go-cty/cty"

	"github.com/saga-engine/engine/dsl/internal/fasteval"
	"github.com/saga-engine/engine/dsl/internal/link"
	"github.com/saga-engine/engine/dsl/internal/value"
	"github.com/saga-engine/engine/sdk/schema"
)

// replySchemas are outputs of many types.
func replySchemas() [][]schema.Field {
	inner := schema.Type{Kind: schema.KindObject, Fields: []schema.Field{str("a"), num("b", optional), str("pin", optional, hidden)}}
	deep := schema.Type{Kind: schema.KindObject, Fields: []schema.Field{field("in", inner), field("any", anyType, optional), field("l", listOf(schema.KindNumber), optional)}}
	return [][]schema.Field{
		{field("value", anyType, optional)},
		{str("s"), num("n"), field("b", schema.Type{Kind: schema.KindBool}, optional)},
		{str("s", oneOf(`"a"`, `"b"`, `"K"`)), num("n", optional, oneOf(`1`, `2.5`)), str("~/x", hidden)},
		{field("l", listOf(schema.KindString)), field("m", mapOf(schema.KindNumber), optional), field("la", listOf(schema.KindAny), optional)},
		{field("o", inner), field("p", inner, optional, hidden), str("z", optional)},
		{field("d", deep, optional), field("lo", schema.Type{Kind: schema.KindList, Elem: &inner}, optional), field("mo", schema.Type{Kind: schema.KindMap, Elem: &deep}, optional)},
		{field("set", schema.Type{Kind: schema.KindSet, Elem: &schema.Type{Kind: schema.KindString}}, optional), field("value", anyType)},
		{field("mm", schema.Type{Kind: schema.KindMap, Elem: &schema.Type{Kind: schema.KindList, Elem: &anyType}}), field("lb", listOf(schema.KindBool), optional)},
		{},
	}
}

// sameReply compares the way over the bytes with the one over the evaluator's
// types; fast says whether the first was taken.
func sameReply(t testing.TB, fields []schema.Field, raw []byte) (fast bool) {
	t.Helper()
	ty, err := value.ObjectFrom(fields)
	if err != nil {
		t.Fatal(err)
	}
	return sameNarrowed(t, fields, ty, ty, raw)
}

// narrowings are types that output_type may make of an output.
func narrowings(ty cty.Type) []cty.Type {
	object := cty.ObjectWithOptionalAttrs(map[string]cty.Type{"a": cty.DynamicPseudoType, "x": cty.String}, []string{"x"})
	var out []cty.Type
	for _, to := range []cty.Type{object, cty.List(object), cty.Map(cty.Number), cty.String, cty.Set(cty.String), cty.DynamicPseudoType} {
		for _, optional := range []bool{false, true} {
			attrs := map[string]cty.Type{}
			var names []string
			for name, at := range ty.AttributeTypes() {
				if at == cty.DynamicPseudoType {
					at = to
				}
				attrs[name] = at
				if optional && ty.AttributeOptional(name) {
					names = append(names, name)
				}
			}
			out = append(out, cty.ObjectWithOptionalAttrs(attrs, names))
		}
	}
	return out
}

func sameNarrowed(t testing.TB, fields []schema.Field, ty, wanted cty.Type, raw []byte) bool {
	t.Helper()
	got, ok := fasteval.Canonical(link.ReplyShape(fields, ty, wanted), bytes.Clone(raw))
	if !ok {
		return false
	}
	want, err := link.ReplyConverted(fields, ty, wanted)(raw)
	switch {
	case err != nil:
		t.Fatalf("%s was taken as %s; the evaluator says: %v", raw, got.JSON(), err)
	case !got.Equal(want):
		t.Fatalf("%s was taken as %s %q; the evaluator makes %s %q of it", raw, got.JSON(), got.Sensitive(), want.JSON(), want.Sensitive())
	}
	return true
}

// FuzzReply: where a reply is checked without a tree, it is with one too, and
// gives the same value.
func FuzzReply(f *testing.F) {
	for i, s := range []string{
		`{"value":"x"}`, `{"s":"","n":-0}`, `{"s":"\u212a","n":1.0}`, `{"l":[],"m":{}}`, `{"o":{"a":"x","pin":null},"z":null}`,
		`{"mo":{"k":{"in":{"a":"b"}}}}`, `{"value":null,"set":["b","a"]}`, `{"mm":{"k":[1,null]}}`, `{}`,
		`{"value":{"b":1,"a":[{"y":1e3,"x":"\ud83d\ude00é\u2028"}]}}`, `{"n":1e400,"s":"a"}`, ` { "s" : "x" , "n" : 12.50 } `,
		`{"value":1,"value":2}`, `{"value":{"a":1,"a":2}}`, `{"s":"a","n":01}`, "{\"value\":\"\x80\"}", "{\"value\":\"\x01\"}",
		`{"value":[1,]}`, `{"value":1}x`, `{"value":"e\u0301"}`, `{"\u0076alue":1}`, `{"value":-0.000}`, `{"value":tru}`,
		`{"value":` + strings.Repeat("[", 201) + strings.Repeat("]", 201) + `}`,
		`{"value":` + strings.Repeat("[", 199) + strings.Repeat("]", 199) + `}`,
		`{"value":0.` + strings.Repeat("3", 120) + `}`, `{"value":` + strings.Repeat("9", 1001) + `}`,
	} {
		for k := range replySchemas() {
			f.Add(uint8(k), []byte(s))
		}
		f.Add(uint8(i), []byte(s))
	}
	f.Fuzz(func(t *testing.T, schema uint8, raw []byte) {
		all := replySchemas()
		fields := all[int(schema)%len(all)]
		sameReply(t, fields, raw)
		ty, err := value.ObjectFrom(fields)
		if err != nil {
			t.Fatal(err)
		}
		wanted := narrowings(ty)
		sameNarrowed(t, fields, ty, wanted[int(schema)/len(all)%len(wanted)], raw)
	})
}

// A replier writes replies that fit a schema, or nearly so.
type replier struct {
	*rand.Rand
	out bytes.Buffer
}

func (r *replier) one(n int) bool { return r.IntN(n) == 0 }

func (r *replier) space() {
	if r.one(12) {
		r.out.WriteString(" \n\t"[:1+r.IntN(3)])
	}
}

func (r *replier) pick(words ...string) { r.out.WriteString(words[r.IntN(len(words))]) }

func (r *replier) text() {
	r.pick(`"x"`, `"b"`, `""`, `"a b"`, `"<&>"`, `"é"`, `"e\u0301"`, `"\u212a"`, `"\n\"\\"`, `"\ud800"`, `"\u2028"`, "\"\u2029\"", "\"\x7f\"", `"a"`, "\"\xff\"")
}

func (r *replier) number() {
	r.pick("0", "1", "-1", "-0", "2.5", "19.90", "0.10", "-0.0", "1e3", "1E-3", "100", "12345678901234567890", "0.1234567890123456789",
		"3."+strings.Repeat("7", 90), strings.Repeat("9", 120), "1e999")
}

func (r *replier) value(t schema.Type, depth int) {
	r.space()
	defer r.space()
	kind := t.Kind
	if r.one(60) {
		kind = schema.KindAny
	}
	if kind == schema.KindAny {
		kind = []schema.Kind{schema.KindString, schema.KindNumber, schema.KindBool, schema.KindList, schema.KindMap, "null"}[r.IntN(6)]
		t = schema.Type{Kind: kind, Elem: &anyType}
	}
	switch {
	case kind == schema.KindString:
		r.text()
	case kind == schema.KindNumber:
		r.number()
	case kind == schema.KindBool:
		r.pick("true", "false")
	case kind == schema.KindObject:
		r.object(t.Fields, depth)
	case depth > 4 || kind == "null":
		r.out.WriteString("null")
	case kind == schema.KindMap:
		r.members(r.IntN(4), func(i int) (string, schema.Type) {
			return []string{"k", "a", "x", "é", "b/c~", "z"}[r.IntN(6)], *t.Elem
		}, depth)
	default:
		r.out.WriteByte('[')
		for i := range r.IntN(4) {
			if i > 0 {
				r.out.WriteByte(',')
			}
			r.value(*t.Elem, depth+1)
		}
		r.out.WriteByte(']')
	}
}

func (r *replier) members(n int, next func(int) (string, schema.Type), depth int) {
	r.out.WriteByte('{')
	for i := range n {
		if i > 0 {
			r.out.WriteByte(',')
		}
		name, t := next(i)
		r.space()
		quoted, _ := json.Marshal(name)
		r.out.Write(quoted)
		r.space()
		r.out.WriteByte(':')
		if t.Kind == "" {
			r.out.WriteString("null")
			continue
		}
		r.value(t, depth+1)
	}
	r.out.WriteByte('}')
}

func (r *replier) object(fields []schema.Field, depth int) {
	var list []schema.Field
	for _, f := range fields {
		switch {
		case f.Optional && r.one(3):
		case f.Optional && r.one(4), r.one(80):
			list = append(list, schema.Field{Name: f.Name})
		default:
			list = append(list, f)
		}
	}
	if r.one(3) {
		r.Shuffle(len(list), func(i, j int) { list[i], list[j] = list[j], list[i] })
	}
	if r.one(40) {
		list = append(list, str("odd"))
	}
	if len(list) > 0 && r.one(40) {
		list = append(list, list[0])
	}
	r.members(len(list), func(i int) (string, schema.Type) { return list[i].Name, list[i].Type }, depth)
}

// TestRepliesAgree generates replies that fit and that nearly fit, and wants
// the same of both ways. S35.
func TestRepliesAgree(t *testing.T) {
	r := &replier{Rand: rand.New(rand.NewPCG(1, 2))}
	narrow := 0
	for i, fields := range replySchemas() {
		fast := 0
		const rounds = 700
		ty, err := value.ObjectFrom(fields)
		if err != nil {
			t.Fatal(err)
		}
		wanted := narrowings(ty)
		for k := range rounds {
			r.out.Reset()
			r.object(fields, 0)
			if sameReply(t, fields, r.out.Bytes()) {
				fast++
			}
			if sameNarrowed(t, fields, ty, wanted[k%len(wanted)], r.out.Bytes()) {
				narrow++
			}
		}
		if set := i == 6; set != (fast == 0) || !set && fast < rounds/20 {
			t.Errorf("schema %d: %d of %d replies were checked without a tree", i, fast, rounds)
		}
	}
	if narrow < 400 {
		t.Errorf("%d narrowed replies were checked without a tree: the test compares too little", narrow)
	}
}

// TestCanonicalText: strings are written as encoding/json writes them.
func TestCanonicalText(t *testing.T) {
	var all strings.Builder
	for c := range 256 {
		all.WriteByte(byte(c))
	}
	for _, s := range []string{"", "plain", all.String(), "é\u2028\u2029\ufffd\U0001f600<&>\x7f", "\xff\xfe", "a\xc3"} {
		var want bytes.Buffer
		enc := json.NewEncoder(&want)
		enc.SetEscapeHTML(false)
		if err := enc.Encode(s); err != nil {
			t.Fatal(err)
		}
		if got := value.AppendText(nil, s); string(got) != strings.TrimSuffix(want.String(), "\n") {
			t.Errorf("%q is written %s, want %s", s, got, want.String())
		}
	}
}

// TestReplyAllocations: a reply costs its bytes and its value. The margin is
// none: neither depends on the machine.
func TestReplyAllocations(t *testing.T) {
	wf, _ := hotScope(t)
	for _, c := range []struct {
		name  string
		step  string
		reply string
		want  float64
	}{
		{"any", "a", fmt.Sprintf(`{"value":%q}`, strings.Repeat("x", 100)), 2},
		{"typed", "charge", `{"card":"4242","charge_id":"ch_1"}`, 5}, // and the mark, its list and its pointer
	} {
		output, raw := stepNamed(t, wf, c.step).Do.Output, []byte(c.reply)
		got := testing.AllocsPerRun(200, func() {
			if _, err := output(raw); err != nil {
				t.Fatal(err)
			}
		})
		if got > c.want {
			t.Errorf("%s: a reply costs %.0f allocations, want %.0f", c.name, got, c.want)
		}
	}
}
