package main

import (
	"encoding/json"
	"errors"
	"testing"

	"github.com/saga-engine/engine/sdk/sdktest"
)

// TestAgent checks every promise that the agent makes to the engine.
func TestAgent(t *testing.T) {
	dir := t.TempDir()
	a := newAgent()
	config, err := json.Marshal(map[string]string{"dir": dir})
	if err != nil {
		t.Fatal(err)
	}
	if err := a.Configure(t.Context(), config); err != nil {
		t.Fatal(err)
	}
	house := &theatre{dir: dir}
	if err := house.take("Z9"); err != nil {
		t.Fatal(err)
	}
	held := func() int {
		seats, err := house.Held()
		if err != nil {
			t.Error(err)
		}
		return len(seats)
	}
	sdktest.Run(t, a,
		sdktest.Case{Name: "a free seat", Action: "hold", Input: `{"seat":"B7"}`, Effects: held},
		sdktest.Case{Name: "a taken seat", Action: "hold", Input: `{"seat":"Z9"}`, Effects: held, Code: "taken"},
		sdktest.Case{Name: "no seat", Action: "hold", Input: `{"seat":"../B7"}`, Effects: held, Code: "invalid"},
	)
}

func (t *theatre) take(seat string) error {
	_, err := t.Hold("somebody else", seat)
	return err
}

func TestHoldAndRelease(t *testing.T) {
	house, err := open(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	first, err := house.Hold("a", "B7")
	if err != nil {
		t.Fatal(err)
	}
	if again, err := house.Hold("a", "B7"); err != nil || again != first {
		t.Errorf("the same key again: %q, %v, want %q", again, err, first)
	}
	if _, err := house.Hold("b", "B7"); !errors.Is(err, errTaken) {
		t.Errorf("another key: %v, want %v", err, errTaken)
	}
	if err := house.Release("a"); err != nil {
		t.Fatal(err)
	}
	if _, err := house.Hold("a", "B7"); !errors.Is(err, errReleased) {
		t.Errorf("after its release: %v, want %v", err, errReleased)
	}
	if _, err := house.Hold("b", "B7"); err != nil {
		t.Errorf("the seat is not free again: %v", err)
	}
}

// The schema can be made: tags and capabilities fit together.
func TestSchema(t *testing.T) {
	schema, err := newAgent().Schema()
	if err != nil {
		t.Fatal(err)
	}
	if schema.Name != "theatre" || len(schema.Actions) != 2 {
		t.Errorf("schema = %+v, want theatre with two actions", schema)
	}
}
