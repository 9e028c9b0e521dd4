//go:build linux

package clients_test

import (
	"context"
	"database/sql"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/stretchr/testify/require"

	"github.com/redial-go/redial/bench/interop/clients"
	"github.com/redial-go/redial/bench/interop/internal/server"
	"github.com/redial-go/redial/reconnect/backoff/retry"
)

const insert = "insert into ledger values ($1) on conflict do nothing"

// openPool is a pool by the retrying dialer, and an empty table.
func openPool(t *testing.T) (*server.Server, *pgxpool.Pool, <-chan int) {
	s, url := server.Postgres(t)
	d, tries := retrying()
	pool, err := clients.Pool(t.Context(), url, d, outage)
	require.NoError(t, err)
	t.Cleanup(pool.Close)
	require.NoError(t, execute(t.Context(), pool, "create table ledger (id bigint primary key)"))
	return s, pool, tries
}

// execute takes a connection, for which it waits, and executes once.
func execute(ctx context.Context, pool *pgxpool.Pool, statement string, arguments ...any) error {
	c, err := clients.Acquire(ctx, pool)
	if err != nil {
		return err
	}
	defer c.Release()
	_, err = c.Exec(ctx, statement, arguments...)
	return err
}

func rows(t *testing.T, pool *pgxpool.Pool) (n int) {
	c, err := clients.Acquire(t.Context(), pool)
	require.NoError(t, err)
	defer c.Release()
	require.NoError(t, c.QueryRow(t.Context(), "select count(*) from ledger").Scan(&n))
	return n
}

func TestWithoutTheDialerAPostgresCallFailsWhileTheServerIsAway(t *testing.T) {
	s, url := server.Postgres(t)
	pool, err := pgxpool.New(t.Context(), url)
	require.NoError(t, err)
	defer pool.Close()
	s.Kill()
	_, err = pool.Exec(t.Context(), "select 1")
	require.ErrorContains(t, err, "connection refused")
}

func TestAPostgresCallMadeWhileTheServerIsAwaySucceedsOnceItIsBack(t *testing.T) {
	s, pool, tries := openPool(t)
	require.NoError(t, execute(t.Context(), pool, insert, 1))
	bridge(t, s, tries, func(ctx context.Context) error { return execute(ctx, pool, insert, 2) })
	require.Equal(t, 2, rows(t, pool))
}

func TestAPostgresCallEndsWithItsContextAndClosingThePoolEndsItsDials(t *testing.T) {
	s, pool, _ := openPool(t)
	impatient(t, s, func(ctx context.Context) error { return execute(ctx, pool, "select 1") })
	began := time.Now()
	pool.Close()
	require.Less(t, time.Since(began), time.Minute, "the Dialer gives up after two")
}

func TestPgconnDialsByTheDialer(t *testing.T) {
	s, url := server.Postgres(t)
	d, tries := retrying()
	config, err := pgconn.ParseConfig(url)
	require.NoError(t, err)
	clients.Postgres(config, d, outage)
	ready := retry.Loop{Classify: clients.StartingUp}
	bridge(t, s, tries, func(ctx context.Context) error {
		return ready.Do(ctx, func(ctx context.Context) error {
			c, err := pgconn.ConnectConfig(ctx, config)
			if err == nil {
				err = c.Close(ctx)
			}
			return err
		})
	})
}

func TestDatabaseSQLDialsByTheDialer(t *testing.T) {
	s, url := server.Postgres(t)
	d, tries := retrying()
	db, err := clients.SQL(url, d, outage)
	require.NoError(t, err)
	defer db.Close()
	ready := retry.Loop{Classify: clients.StartingUp}
	bridge(t, s, tries, func(ctx context.Context) error {
		var c *sql.Conn
		err := ready.Do(ctx, func(ctx context.Context) (err error) {
			c, err = db.Conn(ctx)
			return err
		})
		if err != nil {
			return err
		}
		defer c.Close()
		return c.PingContext(ctx)
	})
}

func TestPostgresIsKilledTwiceAndNothingThatWasConfirmedIsLost(t *testing.T) {
	s, pool, _ := openPool(t)
	ctx, stop := context.WithCancel(context.WithoutCancel(t.Context()))
	var writers sync.WaitGroup
	var confirmed, cut atomic.Int64
	for w := range 4 {
		writers.Go(func() {
			for id := w; ctx.Err() == nil; id += 4 {
				// A write that was under way when the server died has an unknown fate: here the
				// writer knows that it may repeat it.
				for execute(context.Background(), pool, insert, id) != nil {
					cut.Add(1)
				}
				confirmed.Add(1)
				time.Sleep(time.Millisecond)
			}
		})
	}
	for range 2 {
		time.Sleep(300 * time.Millisecond)
		s.Kill()
		time.Sleep(time.Second)
		s.Start()
	}
	time.Sleep(500 * time.Millisecond)
	stop()
	writers.Wait()
	require.LessOrEqual(t, cut.Load(), int64(2*4)) // for each death one call of each writer, and none while away
	require.EqualValues(t, confirmed.Load(), rows(t, pool))
	require.LessOrEqual(t, pool.Stat().TotalConns(), int32(4))
	require.Zero(t, pool.Stat().AcquiredConns())
}
