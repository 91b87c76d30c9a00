// Package rival submits jobs to River, another queue on PostgreSQL, in order to compare the engine
// with River.
//
// In: a pool of connections to a database. Out: jobs in the tables of River. No worker of River
// runs, so nothing takes the jobs.
package rival

import (
	"context"
	"fmt"
	"log/slog"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/riverqueue/river"
	"github.com/riverqueue/river/riverdriver/riverpgxv5"
	"github.com/riverqueue/river/rivermigrate"
)

// A Job has the same arguments as a submission of the engine.
type Job struct {
	ID    string `json:"id"` // id of the submission
	Value string `json:"value"`
}

// Kind returns the kind of the job. A worker of River names the kinds of jobs that it can do.
func (Job) Kind() string { return "five" }

// A River submits jobs. Several goroutines may use it.
type River struct{ client *river.Client[pgx.Tx] }

// NewRiver makes the tables of River in the database of the pool, and returns a River.
func NewRiver(ctx context.Context, pool *pgxpool.Pool) (*River, error) {
	quiet := slog.New(slog.DiscardHandler)
	driver := riverpgxv5.New(pool)
	migrator, err := rivermigrate.New(driver, &rivermigrate.Config{Logger: quiet})
	if err != nil {
		return nil, fmt.Errorf("river: %w", err)
	}
	if _, err := migrator.Migrate(ctx, rivermigrate.DirectionUp, nil); err != nil {
		return nil, fmt.Errorf("river: make its tables: %w", err)
	}
	client, err := river.NewClient(driver, &river.Config{Logger: quiet})
	if err != nil {
		return nil, fmt.Errorf("river: %w", err)
	}
	return &River{client: client}, nil
}

// Insert submits a job in a transaction of its own.
func (r *River) Insert(ctx context.Context, j Job) error {
	_, err := r.client.Insert(ctx, j, nil)
	return err
}

// InsertTx submits a job in the transaction of the caller.
func (r *River) InsertTx(ctx context.Context, tx pgx.Tx, j Job) error {
	_, err := r.client.InsertTx(ctx, tx, j, nil)
	return err
}

// InsertMany submits several jobs in one transaction. If the parameter `fast` is true, it uses
// COPY, and River returns no rows.
func (r *River) InsertMany(ctx context.Context, jobs []Job, fast bool) (err error) {
	all := make([]river.InsertManyParams, len(jobs))
	for i, j := range jobs {
		all[i].Args = j
	}
	if fast {
		_, err = r.client.InsertManyFast(ctx, all)
	} else {
		_, err = r.client.InsertMany(ctx, all)
	}
	return err
}
