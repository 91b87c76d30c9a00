package syntax

// actionSpec is the spec of an action block in an agent block. The block describes a declared
// action: it uses an action of the agent's plugin, but has its own name, arguments and output.
var actionSpec = &bodySpec{
	attrs: append(opt("result", "timeout"),
		attrSpec{name: "uses", required: true, literal: true},
		attrSpec{name: "arguments", literal: true, typ: true}, attrSpec{name: "output", literal: true, typ: true},
		attrSpec{name: "errors", literal: true}, attrSpec{name: "idempotent", literal: true},
		attrSpec{name: "read_only", literal: true}, attrSpec{name: "compensated_by", literal: true},
		attrSpec{name: "by_key", literal: true}, attrSpec{name: "lookup", literal: true}),
	blocks: []blockSpec{
		{name: "input", body: freeSpec},
		{name: "fail_when", many: true, body: refusalSpec},
	},
}
