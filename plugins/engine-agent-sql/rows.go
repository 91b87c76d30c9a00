package main

import (
	"context"
	"database/sql"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"regexp"
	"strconv"
	"strings"
	"time"

	"github.com/saga-engine/engine/sdk"
)

// maxBytes is the largest size of all rows that a statement returns, in bytes. With this limit, the
// rows usually fit into a reply. They may be larger in the reply, because JSON escapes some
// characters.
const maxBytes = 512 << 10

// rowsOut is the output of all actions.
type rowsOut struct {
	Rows         any   `agent:"rows" doc:"Rows of the last statement: a list of objects by column name."`
	RowsAffected int64 `agent:"rows_affected" doc:"Rows that all statements changed or returned."`
}

// run executes statements in order and returns the rows of the last statement. It prepares each
// statement before it executes the statement. PostgreSQL refuses to prepare a text with two
// statements. So the text of a statement cannot contain a second one, such as COMMIT.
func (tx work) run(ctx context.Context, sts []statement) (rowsOut, error) {
	out := rowsOut{Rows: []any{}}
	for i, st := range sts {
		rows, n, err := tx.runOne(ctx, st)
		if err != nil {
			if len(sts) > 1 {
				err = fmt.Errorf("statements[%d]: %w", i, err)
			}
			return rowsOut{}, err
		}
		out.RowsAffected += n
		if i == len(sts)-1 {
			out.Rows = rows
		}
	}
	return out, nil
}

func (tx work) runOne(ctx context.Context, st statement) (rows []any, n int64, err error) {
	rows = []any{}
	stmt, err := tx.PrepareContext(ctx, st.SQL)
	if err != nil {
		return nil, 0, err
	}
	defer stmt.Close() //nolint:errcheck // the end of the transaction closes stmt in any case
	// The method `failed` must run before stmt.Close, which could wait for ever on a lost
	// connection.
	defer func() { tx.session.failed(err) }()
	if !returnsRows(st.SQL) {
		res, err := stmt.ExecContext(ctx, st.Args...)
		if err != nil {
			return nil, 0, err
		}
		n, err = res.RowsAffected()
		return rows, n, err
	}
	cursor, err := stmt.QueryContext(ctx, st.Args...)
	if err != nil {
		return nil, 0, err
	}
	defer func() {
		tx.session.failed(err)
		err = errors.Join(err, cursor.Close())
	}()
	columns, err := cursor.ColumnTypes()
	if err != nil {
		return nil, 0, err
	}
	if name := twice(columns); name != "" {
		return nil, 0, invalid("sql: two columns are named %q; give one of them another name", name)
	}
	bytes := 0
	for cursor.Next() {
		row, size, err := scan(cursor, columns)
		if err != nil {
			return nil, 0, err
		}
		rows = append(rows, row)
		if bytes += size; len(rows) > tx.maxRows || bytes > maxBytes {
			return nil, 0, &sdk.Failure{Code: codeTooManyRows, Permanent: true, Message: fmt.Sprintf(
				"the statement returns more than %d rows or %d bytes", tx.maxRows, maxBytes)}
		}
	}
	return rows, int64(len(rows)), cursor.Err()
}

func twice(columns []*sql.ColumnType) string {
	seen := map[string]bool{}
	for _, c := range columns {
		if seen[c.Name()] {
			return c.Name()
		}
		seen[c.Name()] = true
	}
	return ""
}

func scan(cursor *sql.Rows, columns []*sql.ColumnType) (map[string]any, int, error) {
	values := make([]any, len(columns))
	targets := make([]any, len(columns))
	for i := range values {
		targets[i] = &values[i]
	}
	if err := cursor.Scan(targets...); err != nil {
		return nil, 0, err
	}
	row, size := make(map[string]any, len(columns)), 0
	for i, c := range columns {
		v, err := value(c.DatabaseTypeName(), values[i])
		if err != nil {
			return nil, 0, fmt.Errorf("column %q: %w", c.Name(), err)
		}
		row[c.Name()] = v
		size += len(c.Name()) + weight(values[i])
	}
	return row, size, nil
}

func weight(v any) int {
	switch v := v.(type) {
	case []byte:
		return len(v)
	case string:
		return len(v)
	}
	return 16
}

// value converts a column's value to a value for the JSON output. Numbers keep their exact
// form. The value of a json column stays JSON, and bytea becomes base64. Dates and times have
// the form of RFC 3339. For other types, value returns the text form of the database.
func value(typ string, v any) (any, error) {
	switch v := v.(type) {
	case nil, bool, string:
		return v, nil
	case int64:
		return json.Number(strconv.FormatInt(v, 10)), nil
	case float64:
		if math.IsNaN(v) || math.IsInf(v, 0) {
			return strconv.FormatFloat(v, 'g', -1, 64), nil
		}
		bits := 64
		if typ == "FLOAT4" {
			bits = 32
		}
		return json.Number(strconv.FormatFloat(v, 'g', -1, bits)), nil
	case time.Time:
		return timeText(typ, v), nil
	case []byte:
		return bytesValue(typ, v)
	}
	return nil, fmt.Errorf("values of type %s (%T) are not supported", typ, v)
}

func timeText(typ string, t time.Time) string {
	switch typ {
	case "DATE":
		return t.Format(time.DateOnly)
	case "TIME":
		return t.Format("15:04:05.999999")
	case "TIMETZ":
		return t.Format("15:04:05.999999Z07:00")
	}
	return t.UTC().Format(time.RFC3339Nano)
}

var numberPattern = regexp.MustCompile(`^-?[0-9]+(\.[0-9]+)?$`)

func bytesValue(typ string, b []byte) (any, error) {
	switch typ {
	case "BYTEA":
		return base64.StdEncoding.EncodeToString(b), nil
	case "NUMERIC":
		if numberPattern.Match(b) {
			return json.Number(b), nil
		}
	case "JSON", "JSONB":
		dec := json.NewDecoder(strings.NewReader(string(b)))
		dec.UseNumber()
		var tree any
		err := dec.Decode(&tree)
		return tree, err
	}
	return string(b), nil
}
