package dsl

import (
	"encoding/json"
	"time"

	"github.com/saga-engine/engine/sdk"
)

func str(name string, opts ...func(*sdk.Field)) sdk.Field {
	return field(name, sdk.Type{Kind: sdk.KindString}, opts...)
}

func num(name string, opts ...func(*sdk.Field)) sdk.Field {
	return field(name, sdk.Type{Kind: sdk.KindNumber}, opts...)
}

func field(name string, t sdk.Type, opts ...func(*sdk.Field)) sdk.Field {
	f := sdk.Field{Name: name, Type: t}
	for _, o := range opts {
		o(&f)
	}
	return f
}

func optional(f *sdk.Field) { f.Optional = true }

func hidden(f *sdk.Field) { f.Sensitive = true }

func codes(f *sdk.Field) { f.Codes = true }

func statuses(f *sdk.Field) { f.Pattern = "[1-5]([0-9]{2}|[0-9][xX]|[xX]{2})" }

func preset(raw string) func(*sdk.Field) {
	return func(f *sdk.Field) { f.Optional, f.Default = true, json.RawMessage(raw) }
}

func oneOf(raw ...string) func(*sdk.Field) {
	return func(f *sdk.Field) {
		for _, r := range raw {
			f.Enum = append(f.Enum, json.RawMessage(r))
		}
	}
}

func listOf(t sdk.Kind) sdk.Type { return sdk.Type{Kind: sdk.KindList, Elem: &sdk.Type{Kind: t}} }

func mapOf(t sdk.Kind) sdk.Type { return sdk.Type{Kind: sdk.KindMap, Elem: &sdk.Type{Kind: t}} }

var anyType = sdk.Type{Kind: sdk.KindAny}

// testAgents are the agents of the examples of the language.
func testAgents() map[string]AgentBinary {
	bins := map[string]AgentBinary{
		"payment": {Version: "1.2.3", Schema: sdk.Schema{
			Name: "stripe", Version: "1.2.3",
			Config: []sdk.Field{str("api_key", optional, hidden), str("region", optional)},
			Actions: map[string]sdk.ActionSchema{
				"charge": {
					Inputs:     []sdk.Field{num("amount"), str("email", optional), str("currency", preset(`"eur"`), oneOf(`"eur"`, `"usd"`))},
					Outputs:    []sdk.Field{str("charge_id"), str("card", hidden, optional)},
					Errors:     []sdk.ErrorCode{{Code: "card_declined"}, {Code: "gateway_busy", Retryable: true}},
					Idempotent: true, Lookup: true, Typical: 2 * time.Second,
				},
				"refund":    {Inputs: []sdk.Field{str("charge_id"), str("reason", optional)}, Idempotent: true},
				"subscribe": {Inputs: []sdk.Field{str("plan")}, Outputs: []sdk.Field{str("id")}, Idempotent: true},
			},
		}},
		"inventory": {Version: "0.1.0", Schema: sdk.Schema{
			Name: "inventory", Version: "0.1.0",
			Actions: map[string]sdk.ActionSchema{
				"reserve": {
					Inputs: []sdk.Field{str("sku"), num("qty", preset("1"))}, Outputs: []sdk.Field{str("reservation_id"), str("token", hidden, optional)},
					Errors: []sdk.ErrorCode{{Code: "out_of_stock"}}, Idempotent: true, CompensatedBy: "release",
				},
				"release":   {Inputs: []sdk.Field{str("reservation_id", optional), str("sku", optional)}, Idempotent: true, ByKey: true},
				"peek":      {Inputs: []sdk.Field{str("sku")}, Outputs: []sdk.Field{num("qty"), field("tags", listOf(sdk.KindString))}, Idempotent: true, ReadOnly: true},
				"hold":      {Inputs: []sdk.Field{str("sku")}, CompensatedBy: "unhold"},
				"unhold":    {Inputs: []sdk.Field{str("hold_id")}},
				"borrow":    {Inputs: []sdk.Field{str("sku")}, Outputs: []sdk.Field{field("items", listOf(sdk.KindString))}, CompensatedBy: "give_back"},
				"give_back": {Inputs: []sdk.Field{num("items")}},
			},
		}},
		"shipping": {Version: "2.0.0", Schema: sdk.Schema{
			Name: "shipping", Version: "2.0.0",
			Actions: map[string]sdk.ActionSchema{
				"book": {
					Inputs:  []sdk.Field{str("reference"), field("parcels", listOf(sdk.KindString), optional)},
					Outputs: []sdk.Field{str("booking_id"), str("tracking")}, Errors: []sdk.ErrorCode{{Code: "no_carrier"}},
				},
				"cancel": {Inputs: []sdk.Field{str("booking_id")}, Idempotent: true},
			},
		}},
		"slack": {Version: "1.0.0", Schema: sdk.Schema{Name: "slack", Version: "1.0.0", Actions: map[string]sdk.ActionSchema{
			"post": {Inputs: []sdk.Field{str("text")}},
		}}},
		"cloud": {Version: "1.0.0", Schema: sdk.Schema{Name: "cloud", Version: "1.0.0", Actions: map[string]sdk.ActionSchema{
			"create_project": {
				Inputs: []sdk.Field{str("name"), str("region")}, Outputs: []sdk.Field{str("id"), num("quota_gb")},
				CompensatedBy: "delete_project", Idempotent: true, Heartbeats: true,
			},
			"delete_project": {Inputs: []sdk.Field{str("id")}, Idempotent: true},
			"get_project": {
				Inputs: []sdk.Field{str("id")}, Outputs: []sdk.Field{str("state"), field("admins", listOf(sdk.KindString)), str("ip")},
				ReadOnly: true, Idempotent: true,
			},
		}}},
		"dns": {Version: "1.0.0", Schema: sdk.Schema{Name: "dns", Version: "1.0.0", Actions: map[string]sdk.ActionSchema{
			"publish": {Inputs: []sdk.Field{str("name"), str("target")}, Idempotent: true},
		}}},
		"http": {Version: "1.0.0", Schema: sdk.Schema{Name: "http", Version: "1.0.0", Actions: map[string]sdk.ActionSchema{
			"get": {
				Inputs:  []sdk.Field{str("url"), field("headers", mapOf(sdk.KindString), optional), field("errors", mapOf(sdk.KindString), optional, statuses, codes)},
				Outputs: []sdk.Field{num("status"), field("json", anyType, optional), str("body", optional)},
				Errors:  []sdk.ErrorCode{{Code: sdk.AnyCode}}, ReadOnly: true, Idempotent: true,
			},
			"post": {
				Inputs: []sdk.Field{str("url"), field("json", anyType, optional), field("headers", mapOf(sdk.KindString), optional),
					field("errors", mapOf(sdk.KindString), optional, statuses, codes), field("expect", listOf(sdk.KindString), optional, statuses)},
				Outputs: []sdk.Field{num("status"), field("json", anyType, optional), str("body", optional)},
				Errors:  []sdk.ErrorCode{{Code: sdk.AnyCode}},
			},
		}}},
		"sql": {Version: "1.0.0", Schema: sdk.Schema{Name: "sql", Version: "1.0.0", Actions: map[string]sdk.ActionSchema{
			"query": {
				Inputs:  []sdk.Field{str("sql"), field("args", sdk.Type{Kind: sdk.KindList, Elem: &anyType}, optional)},
				Outputs: []sdk.Field{field("rows", sdk.Type{Kind: sdk.KindList, Elem: &anyType})}, ReadOnly: true, Idempotent: true,
			},
		}}},
		"batch": {Version: "1.0.0", Schema: sdk.Schema{Name: "batch", Version: "1.0.0", Actions: map[string]sdk.ActionSchema{
			"import": {Outputs: []sdk.Field{num("items")}, Idempotent: true, CompensatedBy: "drop", Heartbeats: true, Checkpoints: true},
			"drop":   {Idempotent: true, ByKey: true},
		}}},
		"mock": {Version: "1.0.0", Schema: sdk.Schema{Name: "mock", Version: "1.0.0", Actions: map[string]sdk.ActionSchema{
			"call": {
				Inputs: []sdk.Field{field("value", anyType, optional), field("fail", sdk.Type{Kind: sdk.KindObject, Fields: []sdk.Field{
					str("code"), str("message", optional), num("times", optional),
				}}, optional)},
				Outputs: []sdk.Field{field("value", anyType, optional)}, Errors: []sdk.ErrorCode{{Code: sdk.AnyCode}}, Idempotent: true,
			},
			"call_once": {
				Inputs:  []sdk.Field{field("value", anyType, optional)},
				Outputs: []sdk.Field{field("value", anyType, optional)}, Errors: []sdk.ErrorCode{{Code: sdk.AnyCode}},
			},
		}}},
	}
	return bins
}
