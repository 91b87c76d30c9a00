package call

import (
	"slices"
	"testing"

	"github.com/saga-engine/engine/dsl"
)

func TestMarkEchoes(t *testing.T) {
	tests := []struct {
		name    string
		json    string
		known   []string
		secrets []string
		want    []string
	}{
		{"nothing sensitive", `{"a":"hunter22"}`, nil, nil, nil},
		{"nothing repeated", `{"a":"other"}`, nil, []string{"hunter22"}, nil},
		{"a whole string", `{"a":"hunter22","b":"x"}`, nil, []string{"hunter22"}, []string{"/a"}},
		{"part of a string", `{"a":"Bearer hunter22!"}`, nil, []string{"hunter22"}, []string{"/a"}},
		{"in a list, under an odd key", `{"a/b":[1,"hunter22"]}`, nil, []string{"hunter22"}, []string{"/a~1b/1"}},
		{"a number", `{"n":120034}`, nil, []string{"2003"}, []string{"/n"}},
		{"in a key", `{"m":{"x hunter22":1}}`, nil, []string{"hunter22"}, []string{"/m"}},
		{"the whole value", `"hunter22"`, nil, []string{"hunter22"}, []string{""}},
		{"too short to tell", `{"a":"abc"}`, nil, []string{"abc"}, nil},
		{"with quotes and line breaks", `{"a":"x\"y\nz<"}`, nil, []string{"\"y\nz<"}, []string{"/a"}},
		{"JSON as text", `{"a":"{\"t\":\"x\\\"y\\nz<\"}"}`, nil, []string{"\"y\nz<"}, []string{"/a"}},
		{"JSON as text, for HTML", `{"a":"t=y\\u003cz"}`, nil, []string{"t=y<z"}, []string{"/a"}},
		{"what is marked stays", `{"a":"hunter22","b":"hunter22"}`, []string{"/b"}, []string{"hunter22"}, []string{"/a", "/b"}},
		{"several secrets", `{"a":"secret-1","b":"secret-2"}`, nil, []string{"secret-1", "secret-2", "secret-3"}, []string{"/a", "/b"}},
		{"not text", "{\"a\":\"p\ufffdss\"}", nil, []string{"p\xffss"}, []string{"/a"}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			got := markEchoes(dsl.NewValue([]byte(tt.json), tt.known, nil), tt.secrets)
			if !slices.Equal(got.Sensitive(), tt.want) || string(got.JSON()) != tt.json {
				t.Errorf("sensitive = %q of %s, want %q of the same", got.Sensitive(), got.JSON(), tt.want)
			}
		})
	}
}
