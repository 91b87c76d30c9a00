package main

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/saga-engine/engine/sdk"
)

// raise is a statement that fails with a message of so many bytes.
func raise(n int) string {
	return fmt.Sprintf("DO $$ BEGIN RAISE EXCEPTION '%%', repeat('x', %d); END $$", n)
}

// The driver does not read error messages over 30,000 bytes and loses the thread of
// the protocol. Such a connection must end: ten of them would block the agent.
func TestLongErrorMessage(t *testing.T) {
	db, dsn := schema(t)
	a := open(t, in{"dsn": dsn, "max_connections": 2})
	for n := range 5 {
		for _, action := range []string{"exec", "exec_plain"} {
			reply := invoke(t, a, action, in{"sql": raise(40_000)}, key(fmt.Sprint(action, n)))
			if reply.Outcome != sdk.OutcomeFailed || reply.Code != sdk.CodeInvalid || !strings.Contains(reply.Message, "longer than the driver reads") {
				t.Fatalf("%s: %+v, want a definite failure", action, reply)
			}
		}
	}
	if reply := invoke(t, a, "query", in{"sql": "select 1 as n"}); reply.Outcome != sdk.OutcomeResult {
		t.Errorf("afterwards: %+v", reply)
	}
	if n := mustScan[int](t, db, "select count(*) from engine_effects"); n != 0 {
		t.Errorf("%d keys of failed calls are recorded", n)
	}
	reply := invoke(t, a, "exec_plain", in{"sql": raise(20_000)})
	if reply.Outcome != sdk.OutcomeFailed || len(reply.Message) > maxMessage+100 || !strings.Contains(reply.Message, "SQLSTATE P0001") {
		t.Errorf("a message of 20,000 bytes became one of %d: %.100s", len(reply.Message), reply.Message)
	}
}

// A secret in a long message reaches the engine whole or not at all.
func TestMessageKeepsSecretsWhole(t *testing.T) {
	_, dsn := schema(t)
	a := open(t, in{"dsn": dsn})
	reply := invoke(t, a, "exec_plain", in{"sql": "select (repeat('x', 1995) || $1)::int", "args": []any{"sw0rd-fish"}})
	if reply.Outcome != sdk.OutcomeFailed || !strings.Contains(reply.Message, "xxx") || strings.Contains(reply.Message, "sw0r") {
		t.Errorf("%+v", reply)
	}
}

// Nothing of a call's session reaches the next call.
func TestSessionIsReset(t *testing.T) {
	db, dsn := schema(t)
	a := open(t, in{"dsn": dsn, "max_connections": 1})
	first := invoke(t, a, "exec_plain", in{"statements": []any{
		in{"sql": "select pg_backend_pid() as pid"},
		in{"sql": "set search_path = pg_catalog"},
		in{"sql": "set lock_timeout = '7s'"},
		in{"sql": "create temp table engine_left (n int)"},
		in{"sql": "select pg_advisory_lock(4711)"},
		in{"sql": "listen engine_left"},
		in{"sql": "select set_config('app.tenant', 'other', false)"},
	}})
	if first.Outcome != sdk.OutcomeResult {
		t.Fatalf("%+v", first)
	}
	if n := mustScan[int](t, db, "select count(*) from pg_locks where locktype = 'advisory' and objid = 4711"); n != 0 {
		t.Error("after the call its advisory lock is still held")
	}
	reply := invoke(t, a, "query", in{"sql": `select current_setting('search_path') as path, current_setting('lock_timeout') as timeout,
		to_regclass('pg_temp.engine_left') as left, current_setting('app.tenant', true) as tenant,
		(select count(*) from pg_listening_channels()) as channels, (select count(*) from pg_prepared_statements where from_sql) as prepared`})
	var out struct {
		Rows []struct {
			Path     string
			Timeout  string
			Left     *string
			Tenant   string
			Channels int
			Prepared int
		}
	}
	if err := json.Unmarshal(reply.Output, &out); err != nil || len(out.Rows) != 1 {
		t.Fatalf("%+v, %v", reply, err)
	}
	if r := out.Rows[0]; !strings.HasPrefix(r.Path, "agent_") || r.Timeout != "0" || r.Left != nil || r.Tenant != "" || r.Channels != 0 || r.Prepared != 0 {
		t.Errorf("the next call finds %+v", r)
	}
	// The connection itself is kept: making one costs more than resetting it.
	if n := mustScan[int](t, db, "select count(*) from pg_stat_activity where application_name = 'engine-agent-sql' and state = 'idle'"); n < 1 {
		t.Error("the connection was not kept")
	}
}

// When a call's context ends its connection ends, whatever the server is doing, and
// the agent has the connection's place back.
func TestConnectionEndsWithItsCall(t *testing.T) {
	db, dsn := schema(t)
	a := open(t, in{"dsn": dsn, "max_connections": 1})
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan sdk.Reply, 1)
	go func() {
		raw := json.RawMessage(`{"sql": "select pg_sleep(600) as engine_sleeps"}`)
		reply, _ := a.Invoke(ctx, sdk.Request{Action: "query", Purpose: sdk.PurposeDo, Input: raw, CompleteBy: time.Now().Add(time.Minute)}, sdk.InvokeOptions{})
		done <- reply
	}()
	sleeping := "select count(*) from pg_stat_activity where query like '%engine_sleeps%' and state = 'active' and pid <> pg_backend_pid()"
	await := func(what string, want int) {
		t.Helper()
		for end := time.Now().Add(20 * time.Second); mustScan[int](t, db, sleeping) != want; <-time.After(10 * time.Millisecond) {
			if time.Now().After(end) {
				t.Fatalf("%s: the statement", what)
			}
		}
	}
	await("does not begin", 1)
	cancel()
	if reply := <-done; reply.Outcome != sdk.OutcomeFailed || reply.Code != sdk.CodeAborted {
		t.Errorf("%+v, want aborted", reply)
	}
	await("goes on", 0)
	if reply := invoke(t, a, "query", in{"sql": "select 1 as n"}); reply.Outcome != sdk.OutcomeResult {
		t.Errorf("afterwards: %+v", reply)
	}
}
