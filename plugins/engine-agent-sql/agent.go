package main

import (
	"context"
	"database/sql"
	"fmt"

	"github.com/saga-engine/engine/sdk"
)

const version = "0.1.0"

// queryIn is the input of the action `query`.
type queryIn struct {
	SQL    string            `agent:"sql" doc:"One statement, with $1, $2, … for the arguments."`
	Args   any               `agent:"args,optional" doc:"List of arguments; lists and objects in it are sent as JSON."`
	Errors map[string]string `agent:"errors,optional,codes" pattern:"[0-9A-Z]{2}([0-9A-Z]{3})?" doc:"SQLSTATE, or its first two characters, to error code."`
}

// execIn is the input of the actions `exec` and `exec_plain`.
type execIn struct {
	SQL        string            `agent:"sql,optional" doc:"One statement, with $1, $2, … for the arguments."`
	Args       any               `agent:"args,optional" doc:"List of arguments; lists and objects in it are sent as JSON."`
	Statements any               `agent:"statements,optional" doc:"Instead of sql and args: a list of { sql, args }, executed in one transaction."`
	Errors     map[string]string `agent:"errors,optional,codes" pattern:"[0-9A-Z]{2}([0-9A-Z]{3})?" doc:"SQLSTATE, or its first two characters, to error code."`
}

// newAgent declares the agent: its actions, inputs and error codes.
func newAgent() *sdk.Agent {
	a := sdk.New("sql", version).Doc("Reads and changes PostgreSQL databases.")
	s := &agent{}
	sdk.Configure(a, s.configure)
	// The action `exec` is declared with sdk.Cancellable, because its lookup can find out whether
	// the transaction was committed. The action `exec_plain` records no key that a lookup could
	// find, so it is declared without sdk.Cancellable.
	codes := []sdk.Option{sdk.Errors(codeConflict, codeTooManyRows), sdk.AnyErrors()}
	with := func(opts ...sdk.Option) []sdk.Option { return append(opts, codes...) }

	sdk.Action(a, "query", s.query, with(sdk.ReadOnly(), sdk.Idempotent(), sdk.Cancellable(), sdk.Doc(
		"Runs a statement in a read-only transaction."))...)
	sdk.Action(a, "exec", s.exec, with(sdk.Idempotent(), sdk.Cancellable(), sdk.Lookup(s.lookup), sdk.Errors(codeKeyReused), sdk.Doc(
		"Runs statements in one transaction, once for each key: the key is recorded in the dedupe table by the same transaction."))...)
	sdk.Action(a, "exec_plain", s.execPlain, with(sdk.Doc(
		"Runs statements in one transaction, whenever it is called; for databases where no dedupe table may be made."))...)
	return a
}

func (s *agent) query(ctx context.Context, c *sdk.Call, in queryIn) (rowsOut, error) {
	st, err := one(in.SQL, in.Args)
	if err != nil {
		return rowsOut{}, err
	}
	var out rowsOut
	err = s.db.transact(ctx, c, in.Errors, &sql.TxOptions{ReadOnly: true}, func(tx work) error {
		var err error
		out, err = tx.run(ctx, []statement{st})
		return err
	})
	return out, err
}

func (s *agent) execPlain(ctx context.Context, c *sdk.Call, in execIn) (rowsOut, error) {
	sts, err := in.statements()
	if err != nil {
		return rowsOut{}, err
	}
	var out rowsOut
	err = s.db.transact(ctx, c, in.Errors, nil, func(tx work) error {
		var err error
		out, err = tx.run(ctx, sts)
		return err
	})
	return out, err
}

// exec executes statements once for each idempotency key.
func (s *agent) exec(ctx context.Context, c *sdk.Call, in execIn) (rowsOut, error) {
	sts, err := in.statements()
	if err != nil {
		return rowsOut{}, err
	}
	return s.effects.exec(ctx, c, in.Errors, sts)
}

// lookup finds out whether the transaction with the call's idempotency key was committed. If it
// was, lookup returns done = true and the result of the transaction.
func (s *agent) lookup(ctx context.Context, c *sdk.Call, _ execIn) (out rowsOut, done bool, err error) {
	return s.effects.lookup(ctx, c)
}

// statements checks the inputs and returns the statements to execute. If an input is wrong, the
// error is a definite failure.
func (in execIn) statements() ([]statement, error) {
	if in.Statements == nil {
		st, err := one(in.SQL, in.Args)
		return []statement{st}, err
	}
	if in.SQL != "" || in.Args != nil {
		return nil, invalid("statements: cannot be used together with sql and args")
	}
	list, ok := in.Statements.([]any)
	if !ok || len(list) == 0 {
		return nil, invalid("statements: must be a list of at least one { sql, args }")
	}
	var sts []statement
	for i, e := range list {
		obj, ok := e.(map[string]any)
		if !ok {
			return nil, invalid("statements[%d]: must be an object", i)
		}
		text, _ := obj["sql"].(string)
		for k := range obj {
			if k != "sql" && k != "args" {
				return nil, invalid("statements[%d]: %q is not known", i, k)
			}
		}
		st, err := one(text, obj["args"])
		if err != nil {
			return nil, fmt.Errorf("statements[%d]: %w", i, err)
		}
		sts = append(sts, st)
	}
	return sts, nil
}
