//go:build linux

package clients_test

import (
	"context"
	"io"
	"net"
	"testing"
	"time"

	"github.com/jackc/pgx/v5/pgconn"
	"github.com/stretchr/testify/require"

	"github.com/redial-go/redial/bench/interop/clients"
	"github.com/redial-go/redial/reconnect/backoff"
)

func TestOnlyStartingUpIsWaitedFor(t *testing.T) {
	for err, class := range map[error]backoff.Class{
		&pgconn.PgError{Code: "57P03"}: backoff.ClassRetry, // cannot_connect_now
		&pgconn.PgError{Code: "28P01"}: backoff.ClassStop,  // invalid_password
		io.EOF:                         backoff.ClassStop,  // what the dialer did not bridge
	} {
		require.Equal(t, class, clients.StartingUp(err).Class)
	}
}

// recovering is a server that accepts connections and answers each login that it
// is starting up. Recovery after a kill here is too short to be met by chance.
func recovering(t *testing.T) (address string, logins <-chan int) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	done, counts := make(chan struct{}), make(chan int, 1000) // more than a test needs
	t.Cleanup(func() { l.Close(); <-done })
	const answer = "SFATAL\x00VFATAL\x00C57P03\x00Mthe database system is starting up\x00\x00"
	go func() {
		defer close(done)
		for n := 1; ; n++ {
			nc, err := l.Accept()
			if err != nil {
				return
			}
			_, _ = nc.Read(make([]byte, 1024))
			_, _ = nc.Write(append([]byte{'E', 0, 0, 0, byte(len(answer) + 4)}, answer...))
			nc.Close()
			counts <- n
		}
	}()
	return l.Addr().String(), counts
}

func TestAcquireWaitsForADatabaseThatIsStartingUp(t *testing.T) {
	address, logins := recovering(t)
	d, _ := retrying()
	pool, err := clients.Pool(t.Context(), "postgres://redial@"+address+"/postgres?sslmode=disable", d, outage)
	require.NoError(t, err)
	defer pool.Close()
	ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
	defer cancel()
	go func() {
		for n := range logins {
			if n == 3 {
				cancel()
				return
			}
		}
	}()
	_, err = clients.Acquire(ctx, pool)
	require.ErrorIs(t, err, context.Canceled)
	require.ErrorContains(t, err, "57P03")
}
