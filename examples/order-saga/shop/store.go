package main

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"net/url"
	"time"

	_ "modernc.org/sqlite" // the driver
)

// schema creates two tables. The table `effects` holds one row for each idempotency key, so
// that the shop recognises a repeated call. The table `stock` holds the stock of each article.
const schema = `
CREATE TABLE IF NOT EXISTS effects (
	seq         INTEGER PRIMARY KEY,
	key         TEXT    NOT NULL UNIQUE,
	kind        TEXT    NOT NULL,
	order_id    TEXT    NOT NULL,
	item        TEXT    NOT NULL DEFAULT '',
	qty         INTEGER NOT NULL DEFAULT 0,
	amount      INTEGER NOT NULL DEFAULT 0,  -- cents
	undoes      TEXT    NOT NULL DEFAULT '', -- key of the call that this one undoes
	fingerprint TEXT    NOT NULL DEFAULT '', -- of the request
	arrivals    INTEGER NOT NULL DEFAULT 0,  -- calls that carried the key
	applied     INTEGER NOT NULL DEFAULT 0,  -- 1 = something in the shop changed
	undone      INTEGER NOT NULL DEFAULT 0,  -- 1 = never to be applied (again)
	status      INTEGER NOT NULL DEFAULT 0,  -- of the last answer
	answer      TEXT    NOT NULL DEFAULT '',
	at          TEXT    NOT NULL
);
CREATE TABLE IF NOT EXISTS stock (
	sku     TEXT PRIMARY KEY,
	on_hand INTEGER NOT NULL CHECK (on_hand >= 0)
) WITHOUT ROWID;`

// A store is the open database file of the shop.
type store struct{ db *sql.DB }

// openStore opens the database file, and creates it if it does not exist.
func openStore(ctx context.Context, path string) (*store, error) {
	st, err := open(path, url.Values{"_txlock": {"immediate"}, "_pragma": {"journal_mode(wal)", "busy_timeout(5000)"}})
	if err != nil {
		return nil, err
	}
	if _, err := st.db.ExecContext(ctx, schema); err != nil {
		return nil, errors.Join(fmt.Errorf("open %s: %w", path, err), st.Close())
	}
	return st, nil
}

func open(path string, q url.Values) (*store, error) {
	db, err := sql.Open("sqlite", (&url.URL{Scheme: "file", Opaque: (&url.URL{Path: path}).EscapedPath(), RawQuery: q.Encode()}).String())
	if err != nil {
		return nil, fmt.Errorf("open %s: %w", path, err)
	}
	db.SetMaxOpenConns(1) // SQLite allows one writer, and each call is a single short transaction
	return &store{db: db}, nil
}

// Close closes the database file.
func (s *store) Close() error { return s.db.Close() }

// A record is one row of the table `effects`.
type record struct {
	Key, Kind, Order, Item string
	Qty, Amount            int64
	Undoes, Fingerprint    string
	Arrivals               int
	Applied, Undone        bool
	Status                 int
	Answer                 string
	At                     string
}

const recordColumns = `key, kind, order_id, item, qty, amount, undoes, fingerprint, arrivals, applied, undone, status, answer, at`

func (r *record) scan(row interface{ Scan(...any) error }) error {
	return row.Scan(&r.Key, &r.Kind, &r.Order, &r.Item, &r.Qty, &r.Amount, &r.Undoes, &r.Fingerprint,
		&r.Arrivals, &r.Applied, &r.Undone, &r.Status, &r.Answer, &r.At)
}

const effectArrive = `INSERT INTO effects (key, kind, order_id, item, qty, amount, undoes, fingerprint, arrivals, at)
VALUES (?, ?, ?, ?, ?, ?, ?, ?, 1, ?)
ON CONFLICT (key) DO UPDATE SET arrivals = arrivals + 1,
	order_id    = iif(effects.fingerprint = '', excluded.order_id, effects.order_id),
	item        = iif(effects.fingerprint = '', excluded.item, effects.item),
	qty         = iif(effects.fingerprint = '', excluded.qty, effects.qty),
	amount      = iif(effects.fingerprint = '', excluded.amount, effects.amount),
	fingerprint = iif(effects.fingerprint = '', excluded.fingerprint, effects.fingerprint)
RETURNING ` + recordColumns

// arrive records the arrival of a call before the shop does any work for the call. It returns the
// row whose key is the key of the call. If this row is a tombstone without a request, arrive stores
// the request of the late call in the row.
func (s *store) arrive(ctx context.Context, r record) (record, error) {
	var known record
	row := s.db.QueryRowContext(ctx, effectArrive, r.Key, r.Kind, r.Order, r.Item, r.Qty, r.Amount, r.Undoes, r.Fingerprint, now())
	if err := known.scan(row); err != nil {
		return record{}, fmt.Errorf("note arrival: %w", err)
	}
	return known, nil
}

// tx runs fn in one transaction. An error of fn rolls the transaction back.
func (s *store) tx(ctx context.Context, fn func(tx *sql.Tx) error) error {
	tx, err := s.db.BeginTx(ctx, nil)
	if err != nil {
		return fmt.Errorf("begin: %w", err)
	}
	if err := fn(tx); err != nil {
		return errors.Join(err, tx.Rollback())
	}
	if err := tx.Commit(); err != nil {
		return fmt.Errorf("commit: %w", err)
	}
	return nil
}

const effectByKey = `SELECT ` + recordColumns + ` FROM effects WHERE key = ?`

// find returns the row of a key; ok is false if there is no row.
func find(ctx context.Context, tx *sql.Tx, key string) (r record, ok bool, err error) {
	err = r.scan(tx.QueryRowContext(ctx, effectByKey, key))
	if errors.Is(err, sql.ErrNoRows) {
		return record{}, false, nil
	}
	if err != nil {
		return record{}, false, fmt.Errorf("find effect: %w", err)
	}
	return r, true, nil
}

const effectSettle = `UPDATE effects SET applied = ?, undone = ?, status = ?, answer = ? WHERE key = ?`

func settle(ctx context.Context, tx *sql.Tx, r record) error {
	if _, err := tx.ExecContext(ctx, effectSettle, r.Applied, r.Undone, r.Status, r.Answer, r.Key); err != nil {
		return fmt.Errorf("settle effect: %w", err)
	}
	return nil
}

const effectBury = `INSERT INTO effects (key, kind, order_id, undone, at) VALUES (?, ?, ?, 1, ?)`

// bury inserts a tombstone for a call that has not arrived yet. Because of the tombstone, the call
// has no effect if it arrives later.
func bury(ctx context.Context, tx *sql.Tx, key, kind, order string) error {
	if _, err := tx.ExecContext(ctx, effectBury, key, kind, order, now()); err != nil {
		return fmt.Errorf("leave tombstone: %w", err)
	}
	return nil
}

const stockMove = `INSERT INTO stock (sku, on_hand) VALUES (?, ?) ON CONFLICT (sku) DO UPDATE SET on_hand = on_hand + ? RETURNING on_hand`

// move changes the stock of an article and returns the new stock. If the article has no row
// yet, its stock before the change is the parameter `first`.
func move(ctx context.Context, tx *sql.Tx, sku string, first, by int64) (int64, error) {
	var left int64
	if err := tx.QueryRowContext(ctx, stockMove, sku, first+by, by).Scan(&left); err != nil {
		return 0, fmt.Errorf("move stock: %w", err)
	}
	return left, nil
}

const stockOnHand = `SELECT on_hand FROM stock WHERE sku = ?`

// onHand returns the stock of an article. If the article has no row yet, this is the parameter
// `initial`.
func onHand(ctx context.Context, tx *sql.Tx, sku string, initial int64) (int64, error) {
	n := initial
	if err := tx.QueryRowContext(ctx, stockOnHand, sku).Scan(&n); err != nil && !errors.Is(err, sql.ErrNoRows) {
		return 0, fmt.Errorf("look at stock: %w", err)
	}
	return n, nil
}

func now() string { return time.Now().UTC().Format("2006-01-02T15:04:05.000Z") }
