package metered

import (
	"math"
	"math/bits"
	"regexp"
	"slices"
	"strings"

	"github.com/hashicorp/hcl/v2"
	"github.com/zclconf/go-cty/cty"
	"github.com/zclconf/go-cty/cty/function"

	"github.com/saga-engine/engine/dsl/internal/value"
)

func functionOf(ctx *hcl.EvalContext, name string) (function.Function, bool) {
	for ; ctx != nil; ctx = ctx.Parent() {
		if f, ok := ctx.Functions[name]; ok {
			return f, true
		}
	}
	return function.Function{}, false
}

// A payment holds the arguments of a call and their sizes. Its methods charge for the call before
// the function is called.
type payment struct {
	m       *Meter
	args    []cty.Value
	weights []weight // sizes of the arguments in the field `args`
	all     weight   // size of all arguments together
}

// A rate is the cost of a call for each byte and each node of its arguments.
type rate struct {
	perByte, perNode       int64          // estimated nanoseconds for each byte or node
	byteMemory, nodeMemory int64          // bytes of memory for each byte or node
	more                   func(*payment) // charges for costs that the rates do not include; nil = no such costs
}

// usual is the rate of functions that read their arguments a few times and copy them once.
var usual = rate{perByte: 30, perNode: 500, byteMemory: 3, nodeMemory: 200}

// rates holds the rates of two kinds of functions. For the first kind, the usual rate is too low.
// For the second kind, the usual rate is too high, and their arguments are often large texts.
var rates = map[string]rate{
	"length":          {perByte: 110, perNode: 50},
	"md5":             {perByte: 8, byteMemory: 1},
	"sha1":            {perByte: 6, byteMemory: 1},
	"sha256":          {perByte: 8, byteMemory: 1},
	"sha512":          {perByte: 8, byteMemory: 1},
	"base64sha256":    {perByte: 8, byteMemory: 1},
	"base64sha512":    {perByte: 8, byteMemory: 1},
	"base64encode":    {perByte: 10, byteMemory: 4},
	"base64decode":    {perByte: 10, byteMemory: 3},
	"urlencode":       {perByte: 20, byteMemory: 4, more: func(p *payment) { p.m.pay(0, 9*p.all.special) }},
	"substr":          {perByte: 80, byteMemory: 2},
	"strrev":          {perByte: 300, byteMemory: 3},
	"title":           {perByte: 60, byteMemory: 4},
	"trim":            {perByte: 10, byteMemory: 2, more: payTrim},
	"startswith":      {perByte: 1},
	"endswith":        {perByte: 1},
	"strcontains":     {perByte: 5},
	"jsonencode":      {perByte: 20, perNode: 3000, nodeMemory: 100, more: func(p *payment) { p.m.pay(0, 4*p.all.json()) }},
	"jsondecode":      {perByte: 30, byteMemory: 3, more: payJSON},
	"yamlencode":      {perByte: 100, perNode: 3000, more: payYAMLText},
	"yamldecode":      {more: payYAML},
	"csvdecode":       {perByte: 30, byteMemory: 3, more: payCSV},
	"join":            {perByte: 6, perNode: 400, byteMemory: 2, nodeMemory: 150, more: payJoin},
	"split":           {perByte: 6, byteMemory: 1, more: paySplit},
	"format":          {perByte: 20, perNode: 1000, nodeMemory: 200, more: payFormat},
	"formatlist":      {perByte: 20, perNode: 1000, nodeMemory: 300, more: payFormatList},
	"replace":         {perByte: 25, byteMemory: 2, more: payReplace},
	"regex":           {perByte: 10, byteMemory: 1, more: func(p *payment) { p.pattern(0, 1) }},
	"regexall":        {perByte: 10, byteMemory: 1, more: payRegexAll},
	"indent":          {perByte: 10, byteMemory: 4, more: payIndent},
	"parseint":        {perByte: 10, byteMemory: 4, more: func(p *payment) { p.m.pay(product(p.all.longest, p.all.longest)/4, 0) }},
	"sum":             {perNode: 600, nodeMemory: 200, more: (*payment).numbers},
	"tonumber":        {perByte: 10, byteMemory: 1, perNode: 400, more: (*payment).numbers},
	"toset":           {perByte: 40, perNode: 3000, byteMemory: 6, nodeMemory: 400, more: paySet},
	"setunion":        {perByte: 40, perNode: 12_000, byteMemory: 6, nodeMemory: 500, more: paySet},
	"setsubtract":     {perByte: 40, perNode: 12_000, byteMemory: 6, nodeMemory: 500, more: paySet},
	"setintersection": {perByte: 40, perNode: 12_000, byteMemory: 6, nodeMemory: 500, more: paySet},
	"setproduct":      {perByte: 10, perNode: 1000, nodeMemory: 300, more: payProduct},
	"sort":            {perByte: 10, perNode: 2500, nodeMemory: 300},
	"distinct":        {perByte: 30, perNode: 1600, byteMemory: 4, nodeMemory: 300},
	"matchkeys":       {perByte: 20, perNode: 800, byteMemory: 4, nodeMemory: 300},
	"index":           {perByte: 20, perNode: 500, byteMemory: 4, nodeMemory: 200},
	"flatten":         {perNode: 600, nodeMemory: 300, more: func(p *payment) { p.m.pay(p.all.nodes*p.all.depth*100, p.all.nodes*p.all.depth*100) }},
	"merge":           {perNode: 800, nodeMemory: 400},
	"coalesce":        {perByte: 1, perNode: 600, nodeMemory: 200, more: (*payment).types},
	"coalescelist":    {perByte: 1, perNode: 600, nodeMemory: 300},
	"concat":          {perByte: 1, perNode: 800, nodeMemory: 400, more: (*payment).lists},
	"zipmap":          {perByte: 10, perNode: 1000, nodeMemory: 500},
	"transpose":       {perByte: 10, perNode: 1500, nodeMemory: 600},
	"chunklist":       {perByte: 1, perNode: 500, nodeMemory: 400},
	"keys":            {perByte: 1, perNode: 500, nodeMemory: 200},
	"values":          {perByte: 1, perNode: 500, nodeMemory: 200},
	"lookup":          {perByte: 1, perNode: 900, nodeMemory: 20},
	"element":         {perByte: 1, perNode: 100, nodeMemory: 20},
	"sensitive":       {perNode: 20},
	"nonsensitive":    {perNode: 20},
	"issensitive":     {perNode: 20},
	"chomp":           {perByte: 400, byteMemory: 3},
	"tomap":           {perByte: 1, perNode: 3000, nodeMemory: 300},
	"range":           {perNode: 500, nodeMemory: 50, more: payRange},
	"timecmp":         {perByte: 20},

	"timeadd":          {perByte: 60, byteMemory: 4},
	"timediff":         {perByte: 40, byteMemory: 4},
	"durationseconds":  {perByte: 40, byteMemory: 4},
	"base64urlencode":  {perByte: 10, byteMemory: 4},
	"base64urldecode":  {perByte: 10, byteMemory: 3},
	"urldecode":        {perByte: 20, byteMemory: 3},
	"base64gzip":       {perByte: 150, byteMemory: 6, more: func(p *payment) { p.m.pay(1_000_000, 1<<20) }},
	"textencodebase64": {perByte: 40, byteMemory: 10},
	"textdecodebase64": {perByte: 40, byteMemory: 14},
	"sort_by":          {perByte: 10, perNode: 1000, nodeMemory: 300, more: payKeys},
	"deepmerge":        {perByte: 1, perNode: 900, nodeMemory: 400},
	"type":             {perByte: 10, perNode: 400, byteMemory: 4, nodeMemory: 100, more: payNested},
	"cidrcontains":     {perByte: 40, byteMemory: 4},
	"templatestring":   {perByte: 1, perNode: 300, nodeMemory: 100},
	"templatefile":     {perByte: 1, perNode: 300, nodeMemory: 100},
}

// charge charges for a call of the function with this name.
func (p *payment) charge(name string) {
	r, ok := rates[name]
	if !ok {
		r = usual
	}
	p.m.pay(product(p.all.bytes, r.perByte)+product(p.all.nodes, r.perNode), product(p.all.bytes, r.byteMemory)+product(p.all.nodes, r.nodeMemory))
	if n := int64(len(p.args)); n > 100 {
		p.m.pay(n*200, n*100)
	}
	if r.more != nil {
		r.more(p)
	}
}

// text returns the argument with index i if this argument is a known string, and otherwise "".
func (p *payment) text(i int) string {
	if i >= len(p.args) {
		return ""
	}
	v, _ := p.args[i].Unmark()
	if v.Type() != cty.String || !v.IsKnown() || v.IsNull() {
		return ""
	}
	return v.AsString()
}

// built charges for a new text of this size.
func (p *payment) built(bytes int64) {
	p.m.pay(product(bytes, textCost), product(bytes, textMemory))
}

// numbers charges for a possible conversion of text arguments to numbers.
func (p *payment) numbers() { p.m.pay(parsing(p.all.digits), 0) }

// types charges for go-cty's search for a common type of all arguments.
func (p *payment) types() {
	types := make([]cty.Type, len(p.args))
	for i, v := range p.args {
		types[i] = v.Type()
	}
	p.m.payAlike(types)
}

// elements charges for the search for a common type of the elements of all arguments. Elements of
// one tuple that have the same type count once, because the tuple first becomes a list or a set.
func (p *payment) elements() {
	var types []cty.Type
	for _, v := range p.args {
		own := len(types)
		for _, ty := range p.m.elementTypes([]cty.Type{v.Type()}) {
			p.m.pay(int64(len(types)-own)*equalCost(ty), 0)
			if !slices.ContainsFunc(types[own:], ty.Equals) {
				types = append(types, ty)
			}
		}
	}
	p.m.payAlike(types)
}

// The method `lists` charges for a search of the library go-cty. The library searches for a common
// type of the elements of all arguments, but only if all arguments are lists.
func (p *payment) lists() {
	for _, v := range p.args {
		if !v.Type().IsListType() {
			return
		}
	}
	p.elements()
}

// payTrim charges for trim. If the second argument is not plain ASCII, trim searches the second
// argument for each character of the first argument.
func payTrim(p *payment) {
	if len(p.weights) == 2 && p.weights[1].special > 0 {
		p.m.pay(product(p.weights[0].bytes, p.weights[1].bytes), 0)
	}
}

func payJoin(p *payment) { p.built(product(p.all.nodes, p.weights0().bytes) + p.all.bytes) }

func (p *payment) weights0() weight {
	if len(p.weights) == 0 {
		return weight{}
	}
	return p.weights[0]
}

func paySplit(p *payment) {
	n := int64(strings.Count(p.text(1), p.text(0))) + 1
	p.m.pay(n*800, n*200)
}

// mostPrinted returns how many verbs (such as %s) a format has, and how many bytes one verb prints
// at most: the size of the argument as JSON, plus the width or precision of the verb. The
// parameter w is the size of the largest argument.
func mostPrinted(format string, w weight) (verbs, longest int64) {
	width, digits := int64(0), int64(0)
	for _, c := range format {
		if c < '0' || c > '9' {
			digits = 0
			continue
		}
		digits = min(digits*10+int64(c-'0'), 999)
		width = max(width, digits)
	}
	return int64(strings.Count(format, "%")), width + 40 + w.json()
}

func payFormat(p *payment) {
	p.numbers()
	var most weight // no verb prints more than the largest argument
	for i, w := range p.weights {
		if i > 0 && w.json() >= most.json() {
			most = w
		}
	}
	verbs, longest := mostPrinted(p.text(0), most)
	p.built(p.weights0().bytes + product(verbs, longest))
}

// payFormatList charges for formatlist. The result of formatlist has as many lines as the longest
// list has elements. Each element of a list is only in one line, at most once for each verb. An
// argument that is not a list is in every line.
func payFormatList(p *payment) {
	p.numbers()
	lines, lists, each := int64(1), weight{}, weight{}
	for i, v := range p.args {
		raw, _ := v.Unmark()
		switch {
		case i == 0:
		case raw.IsKnown() && !raw.IsNull() && (raw.Type().IsListType() || raw.Type().IsSetType() || raw.Type().IsTupleType()):
			lines = max(lines, int64(raw.LengthInt()))
			lists.join(p.weights[i])
		default:
			each.join(p.weights[i])
		}
	}
	verbs, longest := mostPrinted(p.text(0), each)
	p.built(product(lines, p.weights0().bytes+product(verbs, longest)) + product(verbs, lists.json()))
	p.m.pay(lines*1000, lines*300)
}

func payReplace(p *payment) {
	s, old, with := p.text(0), p.text(1), p.text(2)
	if len(old) > 2 && old[0] == '/' && old[len(old)-1] == '/' {
		p.pattern(1, 0)
		named := int64(strings.Count(with, "$"))
		p.built(product(int64(len(s)), 1+named) + product(int64(len(s))+1, int64(len(with))))
		return
	}
	p.built(int64(len(s)) + product(int64(strings.Count(s, old)), int64(len(with))))
}

// pattern charges for a call that matches a text. It also charges for compiling the regular
// expression, which go-cty does twice. The parameters are indexes in p.args: `pattern` is the index
// of the regular expression, and `text` is the index of the text.
func (p *payment) pattern(pattern, text int) {
	re, s := p.text(pattern), int64(len(p.text(text)))
	states := product(int64(len(re))+1, repeated(re))
	p.m.pay(product(states, 1500), product(states, 400))
	p.m.pay(product(s, 50+5*min(states, 1<<30)), 0)
}

// repeated returns how often repetitions such as {n} can repeat a part of a regular expression. It
// returns at most 1,000, because Go's package regexp refuses more repetitions.
func repeated(re string) int64 {
	out := int64(1)
	for rest := re; out < 1000; {
		i := strings.IndexByte(rest, '{')
		if i < 0 {
			break
		}
		rest = rest[i+1:]
		most, n := int64(1), int64(0)
		for _, c := range rest {
			if c >= '0' && c <= '9' {
				n = min(n*10+int64(c-'0'), 1000)
				most = max(most, n)
			} else if n = 0; c != ',' {
				break
			}
		}
		out *= most
	}
	return min(out, 1000)
}

// maxMatches is the largest number of matches that payRegexAll counts.
const maxMatches = 100_000

func payRegexAll(p *payment) {
	p.pattern(0, 1)
	p.pattern(0, 1) // charge twice, because payRegexAll itself matches the text, too
	re, err := regexp.Compile(p.text(0))
	if err != nil {
		return // the call reports the error
	}
	n := int64(len(re.FindAllStringIndex(p.text(1), maxMatches)))
	p.m.pay(product(n, 300+200*int64(re.NumSubexp())), product(n, 150+150*int64(re.NumSubexp())))
	if n == maxMatches {
		p.m.pay(2*MaxCost, 0)
	}
}

// payRange charges for the elements that range() of the language returns. The library go-cty
// returns at most 1,024 elements.
func payRange(p *payment) {
	var at [3]float64 // arguments of range: (end), (start, end) or (start, end, step)
	for i, v := range p.args {
		raw, _ := v.Unmark()
		if i < len(at) && raw.Type() == cty.Number && raw.IsKnown() && !raw.IsNull() {
			at[i], _ = raw.AsBigFloat().Float64()
		}
	}
	count := at[0]
	switch len(p.args) {
	case 2:
		count = at[1] - at[0]
	case 3:
		count = (at[1] - at[0]) / at[2]
	}
	n := int64(1024)
	if count = math.Abs(count); count < 1024 { // false if count is not a number
		n = int64(count) + 1
	}
	p.m.pay(n*450, n*200)
}

func payIndent(p *payment) {
	if len(p.args) != 2 {
		return
	}
	v, _ := p.args[0].Unmark()
	if v.Type() != cty.Number || !v.IsKnown() || v.IsNull() {
		return
	}
	spaces, _ := v.AsBigFloat().Int64()
	p.built(product(spaces, int64(strings.Count(p.text(1), "\n"))))
}

func payProduct(p *payment) {
	n := int64(1)
	sets := true
	for _, v := range p.args {
		raw, _ := v.Unmark()
		if !raw.IsKnown() || raw.IsNull() || !raw.CanIterateElements() {
			return
		}
		n = product(n, int64(raw.LengthInt()))
		sets = sets && raw.Type().IsSetType()
	}
	k := int64(len(p.args))
	p.m.pay(product(n, 300+300*k), product(n, 100+100*k))
	if sets {
		p.m.pay(product(n, 5000+500*k), product(n, 500+100*k))
	}
	for _, v := range p.args {
		if v.Type().IsTupleType() {
			p.m.payAlike(v.Type().TupleElementTypes())
		}
	}
}

// paySet charges for a new set. The library go-cty compares each element with all other elements in
// the same bucket of the set.
func paySet(p *payment) {
	p.elements()
	p.m.pay(product(int64(len(p.args)-1), p.all.nodes, 1000), product(int64(len(p.args)-1), p.all.nodes, 50))
	if p.all.nodes < 200 {
		return
	}
	buckets := map[int]int64{}
	p.m.pay(p.all.nodes*500+p.all.bytes*20, p.all.bytes*2+p.all.nodes*100)
	for _, v := range p.args {
		raw, _ := v.UnmarkDeep()
		if !raw.IsKnown() || raw.IsNull() || !raw.CanIterateElements() {
			continue
		}
		each := 200 + p.all.nodes/int64(max(raw.LengthInt(), 1))*100 // cost of comparing two elements
		for it := raw.ElementIterator(); it.Next(); {
			_, e := it.Element()
			h := e.Hash()
			buckets[h]++
			p.m.pay(buckets[h]*each, 0)
		}
	}
}

func payCSV(p *payment) {
	s := p.text(0)
	fields := int64(strings.Count(s, ",") + strings.Count(s, "\n") + 1)
	p.m.pay(fields*1000, fields*400)
}

// payJSON charges for jsondecode, for each value of the document.
func payJSON(p *payment) {
	n := value.JSONNodes([]byte(p.text(0)))
	p.m.pay(n*1500, n*500)
}

// payYAMLText charges for yamlencode. This function indents each line by the depth of the value,
// and breaks long lines.
func payYAMLText(p *payment) {
	w := p.all
	lines := w.nodes + w.breaks
	p.built(2*(w.bytes+9*w.special) + product(lines, 2*w.depth+8))
	p.m.pay(product(w.bytes+5*w.special, 100), 0)
}

// payKeys charges for the function sort_by, which compares all elements of a list by several keys.
func payKeys(p *payment) {
	n := p.weights0().nodes
	p.m.pay(product(int64(len(p.args)), n, 100+40*int64(bits.Len64(uint64(n)))), product(int64(len(p.args)), n, 40))
}

// payNested charges for type() of the language, which returns the name of a type. To make the name
// of a nested type, type() copies the names of the inner types once for each level.
func payNested(p *payment) {
	p.built(product(p.all.bytes+20*p.all.nodes, p.all.depth))
}

// payYAML charges for yamldecode. It charges nothing for a text that CheckYAML refuses, because
// yamldecode refuses such a text without decoding it.
func payYAML(p *payment) {
	text := p.text(0)
	if CheckYAML(text) == nil {
		n := yamlSize(text)
		p.m.pay(product(n, 1300), product(n, 100))
	}
}
