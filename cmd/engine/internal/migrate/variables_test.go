package migrate

import (
	"encoding/json"
	"testing"

	"github.com/saga-engine/engine/dsl"
)

func TestChangedVariables(t *testing.T) {
	was := dsl.NewValue([]byte(`{"count":7,"gone":"old","kept":1,"token":"hidden"}`), []string{"/token"}, nil)
	is := dsl.NewValue([]byte(`{"count":"7","kept":1,"region":"eu","token":"other"}`), []string{"/token"}, nil)
	got, err := json.Marshal(variablesJSON(changed(was, is)))
	want := `[{"is":"7","name":"count","was":7},{"name":"gone","was":"old"},{"is":"eu","name":"region"},{"is":"(sensitive)","name":"token","was":"(sensitive)"}]`
	if err != nil || string(got) != want {
		t.Errorf("got %s, %v\nwant %s", got, err, want)
	}
	if same := changed(was, was); same != nil {
		t.Errorf("got %+v, want no change", same)
	}
}
