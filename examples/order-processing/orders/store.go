package main

import (
	"context"
	"database/sql"
	"errors"
	"fmt"

	"github.com/saga-engine/engine/sdk/client"
)

// An order is a row of the application's own table.
type order struct {
	ID      string `json:"id"`
	Item    string `json:"item"`
	Amount  int    `json:"amount"` // in cents
	Country string `json:"country"`
	Run     string `json:"-"` // public id of the run that processes the order
	Status  string `json:"-"` // last status that a reply has reported; "" = no reply came yet
	Replies string `json:"-"` // all statuses that replies have reported, in order
}

// queue is the application's own reply queue.
const queue = "orders"

// create makes the application's tables. The table `told` keeps every reply, to show that no
// reply is missing.
func create(ctx context.Context, db *sql.DB) error {
	_, err := db.ExecContext(ctx, `
CREATE SCHEMA IF NOT EXISTS app;
CREATE TABLE IF NOT EXISTS app.orders (
  id      text PRIMARY KEY,
  item    text NOT NULL,
  amount  int  NOT NULL CHECK (amount > 0),
  country text NOT NULL CHECK (country ~ '^[A-Z]{2}$'),
  run     text NOT NULL DEFAULT '',
  status  text NOT NULL DEFAULT ''
);
CREATE TABLE IF NOT EXISTS app.told (id text NOT NULL, seq int NOT NULL, status text NOT NULL, PRIMARY KEY (id, seq));`)
	if err != nil {
		return fmt.Errorf("create the tables: %w", err)
	}
	return nil
}

var errOnPurpose = errors.New("the transaction fails on purpose: neither the order nor its run is stored")

// place stores an order and submits its run in one transaction: both happen, or neither (S54). If
// `fail` is true, the transaction does not commit.
func place(ctx context.Context, db *sql.DB, o order, fail bool) (err error) {
	tx, err := db.BeginTx(ctx, nil)
	if err != nil {
		return fmt.Errorf("begin: %w", err)
	}
	defer func() {
		if err != nil {
			err = errors.Join(err, tx.Rollback())
		}
	}()
	if _, err := tx.ExecContext(ctx, `INSERT INTO app.orders (id, item, amount, country) VALUES ($1, $2, $3, $4)`, o.ID, o.Item, o.Amount, o.Country); err != nil {
		return fmt.Errorf("store order %s: %w", o.ID, err)
	}
	// The run gets only the id of the order (S56). The order's id is also the correlation id of the
	// replies (S67).
	run, err := client.Submit(ctx, tx, "process_order", map[string]string{"order_id": o.ID},
		client.Options{Run: "order/" + o.ID, ReplyTo: "table:" + queue, Correlation: o.ID})
	if err != nil {
		return fmt.Errorf("submit order %s: %w", o.ID, err)
	}
	if _, err := tx.ExecContext(ctx, `UPDATE app.orders SET run = $2 WHERE id = $1`, o.ID, run); err != nil {
		return fmt.Errorf("note the run of order %s: %w", o.ID, err)
	}
	if fail {
		return errOnPurpose
	}
	if err := tx.Commit(); err != nil {
		return fmt.Errorf("commit order %s: %w", o.ID, err)
	}
	return nil
}

// orders returns all orders, by id.
func orders(ctx context.Context, db *sql.DB) (all []order, err error) {
	rows, err := db.QueryContext(ctx, `
SELECT id, item, amount, country, run, status, coalesce((SELECT string_agg(t.status, ' ' ORDER BY t.seq) FROM app.told t WHERE t.id = o.id), '')
FROM app.orders o ORDER BY id`)
	if err != nil {
		return nil, fmt.Errorf("read the orders: %w", err)
	}
	defer func() { err = errors.Join(err, rows.Close()) }()
	for rows.Next() {
		var o order
		if err := rows.Scan(&o.ID, &o.Item, &o.Amount, &o.Country, &o.Run, &o.Status, &o.Replies); err != nil {
			return nil, fmt.Errorf("read the orders: %w", err)
		}
		all = append(all, o)
	}
	return all, rows.Err()
}

// takeReplies takes replies out of the queue and stores their content, in one transaction. So a
// crash loses no reply. The result n is the number of replies.
func takeReplies(ctx context.Context, db *sql.DB) (n int, err error) {
	tx, err := db.BeginTx(ctx, nil)
	if err != nil {
		return 0, fmt.Errorf("begin: %w", err)
	}
	defer func() {
		if err != nil {
			err = errors.Join(err, tx.Rollback())
		}
	}()
	replies, err := client.Replies(ctx, tx, queue, 100)
	if err != nil {
		return 0, err
	}
	for _, r := range replies {
		if _, err := tx.ExecContext(ctx, `INSERT INTO app.told (id, seq, status) VALUES ($1, $2, $3)`, r.Correlation, r.Seq, r.Status); err != nil {
			return 0, fmt.Errorf("note reply %d of order %s: %w", r.Seq, r.Correlation, err)
		}
		if _, err := tx.ExecContext(ctx, `UPDATE app.orders SET status = $2 WHERE id = $1`, r.Correlation, r.Status); err != nil {
			return 0, fmt.Errorf("update order %s: %w", r.Correlation, err)
		}
	}
	if err := tx.Commit(); err != nil {
		return 0, fmt.Errorf("commit replies: %w", err)
	}
	return len(replies), nil
}
