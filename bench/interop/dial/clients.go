package main

import (
	"context"
	"io"
	"net"
	"net/http"
	"time"

	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/redis/go-redis/v9"
	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"
	healthpb "google.golang.org/grpc/health/grpc_health_v1"
)

// client is a client library that can be given a function to dial by, with a server for it.
type client struct {
	name  string
	loop  bool // makes one call after the other
	open  openFunc
	serve func(l net.Listener) (stop func())
}

// dialFunc is the function by which a client dials.
type dialFunc func(ctx context.Context, network, address string) (net.Conn, error)

// callFunc makes one call to the server.
type callFunc func(ctx context.Context) error

// openFunc opens a client of the server at address.
type openFunc func(dial dialFunc, address string) (call callFunc, closeClient func(), err error)

var clients = []client{
	{name: "net/http", open: openHTTP(0), serve: serveHTTP},
	{name: "net/http-4", open: openHTTP(4), serve: serveHTTP},
	{name: "pgxpool-4", open: openPool, serve: servePostgres},
	{name: "gRPC", open: openGRPC, serve: serveGRPC},
	{name: "go-redis", open: openRedis, serve: serveRedis},
	{name: "loop", loop: true, open: openLoop, serve: serveNothing},
}

// way is a way to dial.
type way struct {
	name       string
	plain      bool          // by a net.Dialer
	maxElapsed time.Duration // of the dialer.Dialer, unless plain
}

var ways = []way{
	{name: "net.Dialer", plain: true},
	{name: "Dialer{}"},
	{name: "MaxElapsed: 1 s", maxElapsed: time.Second},
}

func openHTTP(maxConnsPerHost int) openFunc {
	return func(dial dialFunc, address string) (callFunc, func(), error) {
		t := &http.Transport{DialContext: dial, MaxConnsPerHost: maxConnsPerHost}
		c := &http.Client{Transport: t}
		call := func(ctx context.Context) error {
			r, err := http.NewRequestWithContext(ctx, http.MethodGet, "http://"+address+"/", nil)
			if err != nil {
				return err
			}
			resp, err := c.Do(r)
			if err != nil {
				return err
			}
			_, _ = io.Copy(io.Discard, resp.Body)
			return resp.Body.Close()
		}
		return call, t.CloseIdleConnections, nil
	}
}

func openPool(dial dialFunc, address string) (callFunc, func(), error) {
	config, err := pgxpool.ParseConfig("postgres://u:p@" + address + "/x?sslmode=disable")
	if err != nil {
		return nil, nil, err
	}
	config.MaxConns = 4
	config.ConnConfig.DialFunc = pgconn.DialFunc(dial)
	pool, err := pgxpool.NewWithConfig(context.Background(), config)
	if err != nil {
		return nil, nil, err
	}
	return pool.Ping, pool.Close, nil
}

func openGRPC(dial dialFunc, address string) (callFunc, func(), error) {
	dialTCP := func(ctx context.Context, address string) (net.Conn, error) {
		return dial(ctx, "tcp", address)
	}
	c, err := grpc.NewClient("passthrough:///"+address,
		grpc.WithTransportCredentials(insecure.NewCredentials()),
		grpc.WithContextDialer(dialTCP))
	if err != nil {
		return nil, nil, err
	}
	health := healthpb.NewHealthClient(c)
	call := func(ctx context.Context) error {
		_, err := health.Check(ctx, &healthpb.HealthCheckRequest{})
		return err
	}
	return call, func() { c.Close() }, nil
}

func openRedis(dial dialFunc, address string) (callFunc, func(), error) {
	c := redis.NewClient(&redis.Options{
		Addr:                  address,
		Dialer:                dial,
		DialerRetries:         1,
		Protocol:              2,
		DisableIdentity:       true,
		ContextTimeoutEnabled: true,
	})
	call := func(ctx context.Context) error { return c.Ping(ctx).Err() }
	return call, func() { c.Close() }, nil
}

func openLoop(dial dialFunc, address string) (callFunc, func(), error) {
	call := func(ctx context.Context) error {
		c, err := dial(ctx, "tcp", address)
		if err != nil {
			return err
		}
		return c.Close()
	}
	return call, func() {}, nil
}
