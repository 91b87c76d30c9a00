package admission

import (
	"context"
	"database/sql"
	"errors"

	"github.com/saga-engine/engine/engine/store/admission"
)

const (
	savepointBegin = `SAVEPOINT usages`
	savepointBack  = `ROLLBACK TO SAVEPOINT usages`
)

// usages returns, for each check, how its SELECT uses the tables outside of the engine. If there is
// only one check, usages does nothing and returns nil for it: then every table lock that the
// transaction gets belongs to this check.
//
// Two checks may use the same table. After the first check, the transaction has the table lock, so
// pg_locks does not show whether the second check uses the table, too. So usages looks before the
// first check runs. It only prepares each SELECT: already then the server takes the table locks.
// The rollback to a savepoint gives these locks back. The server does not call functions of a
// SELECT here, so tables that only a function uses are missing from the result.
func usages(ctx context.Context, conn *sql.Conn, checks []admission.Check) ([]map[int64]usage, error) {
	all := make([]map[int64]usage, len(checks))
	if len(checks) == 1 {
		return all, nil
	}
	if _, err := conn.ExecContext(ctx, savepointBegin); err != nil {
		return nil, err
	}
	for i := range checks {
		x := checkRun{conn: conn, check: &checks[i]}
		stmt, _, err := x.prepare(ctx, x.selectText(), nil)
		if err != nil {
			return nil, err
		}
		all[i], err = x.reads(ctx)
		if err := errors.Join(err, stmt.Close()); err != nil {
			return nil, err
		}
		if _, err := conn.ExecContext(ctx, savepointBack); err != nil {
			return nil, err
		}
	}
	return all, nil
}
