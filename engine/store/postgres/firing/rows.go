package firing

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"strconv"

	"github.com/lib/pq"

	"github.com/saga-engine/engine/engine/store/firings"
)

// settings are the settings of a transaction that reads business tables. The timeouts are long: a
// query may take long, and locked rows stay locked until the store has accepted their runs.
const settings = `SELECT pg_catalog.set_config('statement_timeout', '600s', true), pg_catalog.set_config('idle_in_transaction_session_timeout', '600s', true),
  pg_catalog.set_config('enable_bitmapscan', 'on', true), pg_catalog.set_config('search_path', 'pg_catalog, pg_temp', true)`

// The type selecting builds a statement around the query of a select block. The query's text comes
// from a definition. All values are parameters.
type selecting struct {
	q    firings.Query
	key  string // quoted name of the key column
	args []any
	from string
}

func around(q firings.Query) *selecting {
	s := &selecting{q: q, key: "r." + pq.QuoteIdentifier(q.Key), from: " FROM (\n" + q.Text + "\n) AS r"}
	for _, a := range q.Args {
		if a == nil {
			s.args = append(s.args, nil)
		} else {
			s.args = append(s.args, *a)
		}
	}
	return s
}

// arg adds a value to the arguments of the statement, and returns the name of its parameter,
// such as $2.
func (s *selecting) arg(v any) string {
	s.args = append(s.args, v)
	return "$" + strconv.Itoa(len(s.args))
}

// page returns the statement that reads rows in the order of the key. To read a page, the parameter
// `limit` is one more than the size of the page. The additional row shows whether more rows follow.
// It also shows whether the last key of the page is unique: if not, the additional row has the same
// key.
func (s *selecting) page(firing int64, after, upTo *string, anew bool, limit int) string {
	text := s.row() + " WHERE " + s.key + " IS NOT NULL"
	if after != nil {
		text += " AND " + s.key + " > " + s.arg(*after)
	}
	if upTo != nil {
		text += " AND " + s.key + " <= " + s.arg(*upTo)
	}
	if anew {
		text += s.unseen(firing)
	}
	text += " ORDER BY " + s.key + " LIMIT " + s.arg(limit)
	if s.q.Lock {
		text += " FOR UPDATE OF r SKIP LOCKED"
	}
	return text
}

// row returns the beginning of a statement that reads keys and rows.
func (s *selecting) row() string {
	return "SELECT (" + s.key + ")::text, pg_catalog.to_jsonb(r)::text" + s.from
}

// unseen returns the condition that no earlier page of this firing had the key.
func (s *selecting) unseen(firing int64) string {
	return " AND NOT EXISTS (SELECT FROM engine.firing_key h WHERE h.firing_id = " + s.arg(firing) + " AND h.key = (" + s.key + ")::text)"
}

// keys returns the statement that reads the keys after a watermark.
func (s *selecting) keys(after *string, limit int) string {
	text := "SELECT (" + s.key + ")::text" + s.from + " WHERE " + s.key + " IS NOT NULL"
	if after != nil {
		text += " AND " + s.key + " > " + s.arg(*after)
	}
	return text + " ORDER BY " + s.key + " LIMIT " + s.arg(limit)
}

// named returns the statement that reads the rows with the given keys.
func (s *selecting) named(keys []string) string {
	return s.row() + " WHERE " + s.key + " = ANY (" + s.arg(pq.Array(keys)) + ") ORDER BY " + s.key
}

// without returns the statement that counts the rows without a key.
func (s *selecting) without() string {
	return "SELECT pg_catalog.count(*)" + s.from + " WHERE " + s.key + " IS NULL"
}

// left returns the statement that counts the rows whose key was in no page of this firing. It is
// for firings with Query.Repeats, whose keys are stored.
func (s *selecting) left(firing int64) string {
	return "SELECT pg_catalog.count(*)" + s.from + " WHERE " + s.key + " IS NOT NULL" + s.unseen(firing)
}

// A reader runs statements. A *sql.Tx is a reader.
type reader interface {
	QueryContext(ctx context.Context, query string, args ...any) (*sql.Rows, error)
	QueryRowContext(ctx context.Context, query string, args ...any) *sql.Row
}

// read returns the rows of a statement. Rows with the same key become one Row, which also says how
// many rows have the key. The result `n` is the number of all rows.
func read(ctx context.Context, db reader, text string, args []any) (list []firings.Row, n int, err error) {
	rows, err := db.QueryContext(ctx, text, args...)
	if err != nil {
		return nil, 0, err
	}
	defer rows.Close()
	for rows.Next() {
		r := firings.Row{Copies: 1}
		if err := rows.Scan(&r.Key, &r.Data); err != nil {
			return nil, 0, err
		}
		n++
		if i := len(list) - 1; i >= 0 && list[i].Key == r.Key {
			list[i].Copies++
			continue
		}
		list = append(list, r)
	}
	return list, n, rows.Err()
}

func readKeys(ctx context.Context, db reader, text string, args []any) (list []string, err error) {
	rows, err := db.QueryContext(ctx, text, args...)
	if err != nil {
		return nil, err
	}
	defer rows.Close()
	for rows.Next() {
		var key string
		if err := rows.Scan(&key); err != nil {
			return nil, err
		}
		list = append(list, key)
	}
	return list, rows.Err()
}

// count returns the number in the only row that a statement returns.
func count(ctx context.Context, db reader, text string, args []any) (n int64, err error) {
	err = db.QueryRowContext(ctx, text, args...).Scan(&n)
	return n, err
}

// inside calls the function `do` in a transaction on the business tables. The transaction is read
// only, unless `writes` is set.
func (s *Store) inside(ctx context.Context, writes bool, do func(tx *sql.Tx) error) (err error) {
	tx, err := s.DB().BeginTx(ctx, &sql.TxOptions{ReadOnly: !writes})
	if err != nil {
		return err
	}
	defer func() {
		if e := tx.Rollback(); e != nil && !errors.Is(e, sql.ErrTxDone) && err == nil {
			err = e
		}
	}()
	if _, err := tx.ExecContext(ctx, settings); err != nil {
		return err
	}
	if err := do(tx); err != nil {
		return err
	}
	return tx.Commit()
}

// explained adds to an error of the query of a select block what a person can do.
func explained(err error) error {
	var e *pq.Error
	if !errors.As(err, &e) {
		return err
	}
	switch e.Code {
	case "42P01":
		return fmt.Errorf("%w; write the table with its schema, such as public.orders, and check that it exists", err)
	case "42883":
		return fmt.Errorf("%w; write a function or an operator of your own with its schema", err)
	case "42P18":
		return fmt.Errorf("%w; write the type of the parameter, such as $status::text", err)
	case "42501":
		return fmt.Errorf("%w; grant the engine's role SELECT on the table, and UPDATE for strategy = \"locked\"", err)
	case "25006":
		return fmt.Errorf("%w; the query of a selection may only read", err)
	}
	return err
}
