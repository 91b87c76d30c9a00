package dsl

import (
	"encoding/json"
	"time"

	"github.com/saga-engine/engine/sdk/schema"
)

func str(name string, opts ...func(*schema.Field)) schema.Field {
	return field(name, schema.Type{Kind: schema.KindString}, opts...)
}

func num(name string, opts ...func(*schema.Field)) schema.Field {
	return field(name, schema.Type{Kind: schema.KindNumber}, opts...)
}

func field(name string, t schema.Type, opts ...func(*schema.Field)) schema.Field {
	f := schema.Field{Name: name, Type: t}
	for _, o := range opts {
		o(&f)
	}
	return f
}

func optional(f *schema.Field) { f.Optional = true }

func hidden(f *schema.Field) { f.Sensitive = true }

func codes(f *schema.Field) { f.Codes = true }

func statuses(f *schema.Field) { f.Pattern = "[1-5]([0-9]{2}|[0-9][xX]|[xX]{2})" }

func preset(raw string) func(*schema.Field) {
	return func(f *schema.Field) { f.Optional, f.Default = true, json.RawMessage(raw) }
}

func oneOf(raw ...string) func(*schema.Field) {
	return func(f *schema.Field) {
		for _, r := range raw {
			f.Enum = append(f.Enum, json.RawMessage(r))
		}
	}
}

func listOf(t schema.Kind) schema.Type {
	return schema.Type{Kind: schema.KindList, Elem: &schema.Type{Kind: t}}
}

func mapOf(t schema.Kind) schema.Type {
	return schema.Type{Kind: schema.KindMap, Elem: &schema.Type{Kind: t}}
}

var anyType = schema.Type{Kind: schema.KindAny}

// testAgents are the agents of the examples of the language.
func testAgents() map[string]AgentBinary {
	bins := map[string]AgentBinary{
		"payment": {Version: "1.2.3", Schema: schema.Schema{
			Name: "stripe", Version: "1.2.3",
			Config: []schema.Field{str("api_key", optional, hidden), str("region", optional)},
			Actions: map[string]schema.Action{
				"charge": {
					Inputs:     []schema.Field{num("amount"), str("email", optional), str("currency", preset(`"eur"`), oneOf(`"eur"`, `"usd"`))},
					Outputs:    []schema.Field{str("charge_id"), str("card", hidden, optional)},
					Errors:     []schema.ErrorCode{{Code: "card_declined"}, {Code: "gateway_busy", Retryable: true}},
					Idempotent: true, Lookup: true, Typical: 2 * time.Second,
				},
				"refund":    {Inputs: []schema.Field{str("charge_id"), str("reason", optional)}, Idempotent: true},
				"subscribe": {Inputs: []schema.Field{str("plan")}, Outputs: []schema.Field{str("id")}, Idempotent: true},
			},
		}},
		"inventory": {Version: "0.1.0", Schema: schema.Schema{
			Name: "inventory", Version: "0.1.0",
			Actions: map[string]schema.Action{
				"reserve": {
					Inputs: []schema.Field{str("sku"), num("qty", preset("1"))}, Outputs: []schema.Field{str("reservation_id"), str("token", hidden, optional)},
					Errors: []schema.ErrorCode{{Code: "out_of_stock"}}, Idempotent: true, CompensatedBy: "release",
				},
				"release":   {Inputs: []schema.Field{str("reservation_id", optional), str("sku", optional)}, Idempotent: true, ByKey: true},
				"peek":      {Inputs: []schema.Field{str("sku")}, Outputs: []schema.Field{num("qty"), field("tags", listOf(schema.KindString))}, Idempotent: true, ReadOnly: true},
				"hold":      {Inputs: []schema.Field{str("sku")}, CompensatedBy: "unhold"},
				"unhold":    {Inputs: []schema.Field{str("hold_id")}},
				"borrow":    {Inputs: []schema.Field{str("sku")}, Outputs: []schema.Field{field("items", listOf(schema.KindString))}, CompensatedBy: "give_back"},
				"give_back": {Inputs: []schema.Field{num("items")}},
			},
		}},
		"shipping": {Version: "2.0.0", Schema: schema.Schema{
			Name: "shipping", Version: "2.0.0",
			Actions: map[string]schema.Action{
				"book": {
					Inputs:  []schema.Field{str("reference"), field("parcels", listOf(schema.KindString), optional)},
					Outputs: []schema.Field{str("booking_id"), str("tracking")}, Errors: []schema.ErrorCode{{Code: "no_carrier"}},
				},
				"cancel": {Inputs: []schema.Field{str("booking_id")}, Idempotent: true},
			},
		}},
		"slack": {Version: "1.0.0", Schema: schema.Schema{Name: "slack", Version: "1.0.0", Actions: map[string]schema.Action{
			"post": {Inputs: []schema.Field{str("text")}},
		}}},
		"cloud": {Version: "1.0.0", Schema: schema.Schema{Name: "cloud", Version: "1.0.0", Actions: map[string]schema.Action{
			"create_project": {
				Inputs: []schema.Field{str("name"), str("region")}, Outputs: []schema.Field{str("id"), num("quota_gb")},
				CompensatedBy: "delete_project", Idempotent: true, Heartbeats: true,
			},
			"delete_project": {Inputs: []schema.Field{str("id")}, Idempotent: true},
			"get_project": {
				Inputs: []schema.Field{str("id")}, Outputs: []schema.Field{str("state"), field("admins", listOf(schema.KindString)), str("ip")},
				ReadOnly: true, Idempotent: true,
			},
		}}},
		"dns": {Version: "1.0.0", Schema: schema.Schema{Name: "dns", Version: "1.0.0", Actions: map[string]schema.Action{
			"publish": {Inputs: []schema.Field{str("name"), str("target")}, Idempotent: true},
		}}},
		"http": {Version: "1.0.0", Schema: schema.Schema{Name: "http", Version: "1.0.0", Actions: map[string]schema.Action{
			"get": {
				Inputs:  []schema.Field{str("url"), field("headers", mapOf(schema.KindString), optional), field("errors", mapOf(schema.KindString), optional, statuses, codes)},
				Outputs: []schema.Field{num("status"), field("json", anyType, optional), str("body", optional)},
				Errors:  []schema.ErrorCode{{Code: schema.AnyCode}}, ReadOnly: true, Idempotent: true,
			},
			"post": {
				Inputs: []schema.Field{str("url"), field("json", anyType, optional), field("headers", mapOf(schema.KindString), optional),
					field("errors", mapOf(schema.KindString), optional, statuses, codes), field("expect", listOf(schema.KindString), optional, statuses)},
				Outputs: []schema.Field{num("status"), field("json", anyType, optional), str("body", optional)},
				Errors:  []schema.ErrorCode{{Code: schema.AnyCode}},
			},
		}}},
		"sql": {Version: "1.0.0", Schema: schema.Schema{Name: "sql", Version: "1.0.0", Actions: map[string]schema.Action{
			"query": {
				Inputs:  []schema.Field{str("sql"), field("args", schema.Type{Kind: schema.KindList, Elem: &anyType}, optional)},
				Outputs: []schema.Field{field("rows", schema.Type{Kind: schema.KindList, Elem: &anyType})}, ReadOnly: true, Idempotent: true,
			},
		}}},
		"batch": {Version: "1.0.0", Schema: schema.Schema{Name: "batch", Version: "1.0.0", Actions: map[string]schema.Action{
			"import": {Outputs: []schema.Field{num("items")}, Idempotent: true, CompensatedBy: "drop", Heartbeats: true, Checkpoints: true},
			"drop":   {Idempotent: true, ByKey: true},
		}}},
		"mock": {Version: "1.0.0", Schema: schema.Schema{Name: "mock", Version: "1.0.0", Actions: map[string]schema.Action{
			"call": {
				Inputs: []schema.Field{field("value", anyType, optional), field("fail", schema.Type{Kind: schema.KindObject, Fields: []schema.Field{
					str("code"), str("message", optional), num("times", optional),
				}}, optional)},
				Outputs: []schema.Field{field("value", anyType, optional)}, Errors: []schema.ErrorCode{{Code: schema.AnyCode}}, Idempotent: true,
			},
			"call_once": {
				Inputs:  []schema.Field{field("value", anyType, optional)},
				Outputs: []schema.Field{field("value", anyType, optional)}, Errors: []schema.ErrorCode{{Code: schema.AnyCode}},
			},
		}}},
	}
	return bins
}
