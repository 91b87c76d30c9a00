package engine_test

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/rogpeppe/go-internal/txtar"

	"github.com/saga-engine/engine/engine/machine"
	"github.com/saga-engine/engine/engine/machine/status"
	"github.com/saga-engine/engine/sdk"
)

// A landlord is the far side of the workflow `onboard`. It keeps a text for each call.
type landlord struct {
	agents []*sdk.Agent

	mu    sync.Mutex
	calls []string
	polls map[string]int // how often each project was looked at
}

type projectIn struct {
	Name   string `agent:"name"`
	Region string `agent:"region"`
}

type projectOut struct {
	ID    string `agent:"id"`
	Quota int    `agent:"quota_gb"`
}

type projectID struct {
	ID string `agent:"id"`
}

type projectState struct {
	State  string   `agent:"state"`
	Admins []string `agent:"admins"`
	IP     string   `agent:"ip"`
}

type dnsIn struct {
	Name   string `agent:"name"`
	Target string `agent:"target"`
}

type planIn struct {
	Plan string `agent:"plan"`
}

func newLandlord() *landlord {
	l := &landlord{polls: map[string]int{}}
	agent := func(name string) *sdk.Agent {
		a := sdk.New(name, "1.0.0")
		l.agents = append(l.agents, a)
		return a
	}
	cloud, dns, payment, slack, mock := agent("cloud"), agent("dns"), agent("payment"), agent("slack"), agent("mock")
	sdk.Action(cloud, "create_project", func(_ context.Context, _ *sdk.Call, in projectIn) (projectOut, error) {
		l.note("create %s in %s", in.Name, in.Region)
		return projectOut{"p-" + in.Name, 20}, nil
	}, sdk.Idempotent(), sdk.Heartbeats(), sdk.CompensatedBy("delete_project"))
	sdk.Action(cloud, "delete_project", func(_ context.Context, _ *sdk.Call, in projectID) (sdk.None, error) {
		l.note("delete %s", in.ID)
		return sdk.None{}, nil
	}, sdk.Idempotent())
	sdk.Action(cloud, "get_project", l.look, sdk.Idempotent(), sdk.ReadOnly())
	sdk.Action(dns, "publish", func(_ context.Context, _ *sdk.Call, in dnsIn) (sdk.None, error) {
		l.note("publish %s at %s", in.Name, in.Target)
		return sdk.None{}, nil
	}, sdk.Idempotent())
	sdk.Action(payment, "subscribe", func(_ context.Context, c *sdk.Call, in planIn) (sdk.None, error) {
		l.note("%s pays for %s", c.Run, in.Plan)
		return sdk.None{}, nil
	}, sdk.Idempotent())
	sdk.Action(slack, "post", func(_ context.Context, _ *sdk.Call, in bellIn) (sdk.None, error) {
		l.note("slack: %s", in.Text)
		return sdk.None{}, nil
	})
	sdk.Action(mock, "call", func(_ context.Context, _ *sdk.Call, in farValue) (farValue, error) {
		l.note("user %v", in.Value)
		return in, nil
	}, sdk.Idempotent())
	return l
}

func (l *landlord) note(format string, args ...any) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.calls = append(l.calls, fmt.Sprintf(format, args...))
}

// look says that a project is ready when it is asked for the third time.
func (l *landlord) look(_ context.Context, _ *sdk.Call, in projectID) (projectState, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.polls[in.ID]++; l.polls[in.ID] < 3 {
		return projectState{State: "PENDING", Admins: []string{}}, nil
	}
	return projectState{"READY", []string{"ann", "bob"}, "192.0.2.7"}, nil
}

// The workflow in section 3 of the language's design runs: a tick of its schedule starts it, and so does
// a person. A person approves or refuses, a project is polled, users are child runs, a day passes after
// the pivot, and a notification says that a run was undone.
func TestOnboardRuns(t *testing.T) {
	archive, err := txtar.ParseFile("../dsl/testdata/valid/onboard.txtar")
	if err != nil {
		t.Fatal(err)
	}
	source := ""
	for _, f := range archive.Files {
		if strings.HasSuffix(f.Name, ".hcl") {
			source += string(f.Data)
		}
	}
	synctest.Test(t, func(t *testing.T) {
		w, l := newWorld(t, orderFlow), newLandlord()
		for _, a := range l.agents {
			schema, err := a.Schema()
			if err != nil {
				t.Fatal(err)
			}
			w.inv.agents[schema.Name] = a
		}
		w.def = define(t, source, l.agents...)
		w.publish()
		n := w.start()
		good := w.submit(n, "onboard", map[string]string{"tenant": "acme", "plan": "enterprise"})
		bad := w.submit(n, "onboard", map[string]string{"tenant": "evil", "plan": "pro"})
		time.Sleep(time.Minute)
		w.signal(good, machine.SignalReceived{Name: "plan_approval", Payload: payload(`{"approved":true,"by":"ann"}`)})
		w.signal(bad, machine.SignalReceived{Name: "plan_approval", Payload: payload(`{"approved":false,"by":"ben"}`)})
		refused := w.wait(n, bad, status.RunCompensated)
		if f := refused.Failure(); f.Step != "approval" || f.Message != "Plan refused by ben." {
			t.Errorf("the failure is %+v", f)
		}
		approved := w.wait(n, good, status.RunSucceeded)
		if url := output(t, approved, "url"); url != "https://acme.example.com" {
			t.Errorf("url is %q", url)
		}
		time.Sleep(5 * time.Hour) // the second tick is skipped, because the run of the first one still waits
		const ticked = "onboard.demo_tenant.20000101T013000Z"
		if runs := w.runsOf("onboard"); len(runs) != 3 || runs[ticked] != status.RunSucceeded {
			t.Errorf("runs are %v, want three, and %s succeeded", runs, ticked)
		}
		want := []string{
			"create acme in eu", "user acme/ann", "user acme/bob", "publish acme.example.com at 192.0.2.7", approved.Name() + " pays for enterprise",
			"create evil in eu", "delete p-evil", "slack: onboard " + refused.Name() + ": approval postcondition_failed",
			"create demo in eu", "user demo/ann", "user demo/bob", "publish demo.example.com at 192.0.2.7", ticked + " pays for free",
		}
		slices.Sort(want)
		l.mu.Lock()
		got := slices.Sorted(slices.Values(l.calls))
		l.mu.Unlock()
		if !slices.Equal(got, want) {
			t.Errorf("calls:\n%s\nwant:\n%s", strings.Join(got, "\n"), strings.Join(want, "\n"))
		}
		n.drain(t)
	})
}
