package clients

import (
	"context"
	"database/sql"
	"errors"
	"net"
	"sync/atomic"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/jackc/pgx/v5/stdlib"

	"github.com/redial-go/redial/dialer"
	"github.com/redial-go/redial/reconnect/backoff"
	"github.com/redial-go/redial/reconnect/backoff/retry"
)

// Postgres prepares config for one connection, made by d, for a d with a MaxElapsed
// below outage: ConnectTimeout is the limit on a dial, with all its tries, and the
// login. Names are left to d, which looks them up anew for each try; pgx does it once.
//
// It is for one connection, since pgx dials with the same function once more when
// that breaks, to cancel what the server may be doing: nothing that should be tried
// again for the 15 s that pgx, and Close of a pool, would wait for it.
func Postgres(config *pgconn.Config, d *dialer.Dialer, outage time.Duration) {
	var connected atomic.Bool
	config.DialFunc = func(ctx context.Context, network, address string) (net.Conn, error) {
		if connected.Load() {
			return new(net.Dialer).DialContext(ctx, network, address)
		}
		return d.DialContext(ctx, network, address)
	}
	config.AfterConnect = func(context.Context, *pgconn.PgConn) error {
		connected.Store(true)
		return nil
	}
	config.LookupFunc = func(_ context.Context, host string) ([]string, error) { return []string{host}, nil }
	config.ConnectTimeout = outage
}

// Pool returns a pool of pgx that dials by d. A connection that lies in the pool is
// tried before it is used, since the server may have died meanwhile.
func Pool(ctx context.Context, url string, d *dialer.Dialer, outage time.Duration) (*pgxpool.Pool, error) {
	config, err := pgxpool.ParseConfig(url)
	if err != nil {
		return nil, err
	}
	config.BeforeConnect = func(_ context.Context, c *pgx.ConnConfig) error {
		Postgres(&c.Config, d, outage)
		return nil
	}
	config.ShouldPing = func(context.Context, pgxpool.ShouldPingParams) bool { return true }
	return pgxpool.NewWithConfig(ctx, config)
}

// Acquire takes a connection from a pool, and waits for a server that accepts
// connections but is not ready: while it starts up or recovers PostgreSQL answers
// the login, which no dial sees, with 57P03. Nothing but that is tried again; what d
// could not bridge is over.
func Acquire(ctx context.Context, pool *pgxpool.Pool) (c *pgxpool.Conn, err error) {
	r := retry.Loop{
		Policy:     &backoff.Exponential{Base: 100 * time.Millisecond, Cap: 5 * time.Second},
		MaxElapsed: 2 * time.Minute,
		Classify:   StartingUp,
	}
	err = r.Do(ctx, func(ctx context.Context) error {
		c, err = pool.Acquire(ctx)
		return err
	})
	return c, err
}

// StartingUp is the verdict of a client that waits for PostgreSQL to be ready, and for
// nothing else.
func StartingUp(err error) backoff.Verdict {
	var answer *pgconn.PgError
	if errors.As(err, &answer) && answer.Code == "57P03" { // cannot_connect_now
		return backoff.Verdict{Class: backoff.ClassRetry}
	}
	return backoff.Verdict{Class: backoff.ClassStop}
}

// SQL returns a database of database/sql that dials by d; with other drivers it is
// their dial function that takes d.DialContext. What Acquire does for a pool is
// done here where a connection is taken, in [sql.DB.Conn].
func SQL(url string, d *dialer.Dialer, outage time.Duration) (*sql.DB, error) {
	config, err := pgx.ParseConfig(url)
	if err != nil {
		return nil, err
	}
	return stdlib.OpenDB(*config, stdlib.OptionBeforeConnect(func(_ context.Context, c *pgx.ConnConfig) error {
		Postgres(&c.Config, d, outage)
		return nil
	})), nil
}
