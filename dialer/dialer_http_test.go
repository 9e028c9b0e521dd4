package dialer_test

import (
	"context"
	"io"
	"net"
	"net/http"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/redial-go/redial/conn/conntest"
	"github.com/redial-go/redial/dialer"
	"github.com/redial-go/redial/reconnect/backoff"
)

// fetch gets a page of where through a transport and reads it.
func fetch(ctx context.Context, transport *http.Transport, address string) (string, error) {
	r, err := http.NewRequestWithContext(ctx, http.MethodGet, "http://"+address+"/", nil)
	if err != nil {
		return "", err
	}
	resp, err := (&http.Client{Transport: transport}).Do(r)
	if err != nil {
		return "", err
	}
	defer resp.Body.Close()
	body, err := io.ReadAll(resp.Body)
	return string(body), err
}

var welcome = http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { _, _ = io.WriteString(w, "welcome") })

// serve answers on l until the test ends.
func serve(t *testing.T, l net.Listener) {
	s := &http.Server{Handler: welcome}
	done := make(chan struct{})
	go func() { defer close(done); _ = s.Serve(l) }()
	t.Cleanup(func() { s.Close(); <-done })
}

func TestARequestWaitsForTheServerToComeUp(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		n, d := away(&dialer.Dialer{Policy: doubling})
		transport := &http.Transport{DialContext: d.DialContext}
		defer transport.CloseIdleConnections()
		time.AfterFunc(5*time.Second, func() {
			l, err := n.Listen(where)
			require.NoError(t, err)
			serve(t, l)
		})
		began := time.Now()
		page, err := fetch(ctx, transport, where)
		require.NoError(t, err)
		require.Equal(t, "welcome", page)
		require.Equal(t, 7*time.Second, time.Since(began))
	})
}

// abandoned is the dial of a request that was given up after a second, which
// net/http goes on with under a context that never ends.
func abandoned(t *testing.T, d *dialer.Dialer, faults ...conntest.Fault) (*conntest.Network, *http.Transport) {
	n, d := away(d)
	n.Fault("", faults...)
	transport := &http.Transport{DialContext: d.DialContext}
	ctx, cancel := context.WithTimeout(ctx, time.Second)
	defer cancel()
	_, err := fetch(ctx, transport, where)
	require.ErrorIs(t, err, context.DeadlineExceeded)
	return n, transport
}

// Whether the dial that is left behind waits or tries.
func TestCloseIdleConnectionsEndsADialThatNobodyWaitsFor(t *testing.T) {
	for name, fault := range map[string]conntest.Fault{"waiting": {}, "trying": hung} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				n, transport := abandoned(t, &dialer.Dialer{Policy: doubling, MaxElapsed: -1}, fault)
				time.Sleep(time.Minute)
				before := len(n.Dials(""))
				require.Greater(t, before, 3) // it continues
				transport.CloseIdleConnections()
				synctest.Wait()
				require.Equal(t, 0, n.Count("").Dialing)
				time.Sleep(time.Hour)
				require.Len(t, n.Dials(""), before)
				require.Empty(t, n.Unclosed())
			})
		})
	}
}

func TestADialThatNobodyWaitsForEndsByMaxElapsed(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		n, _ := abandoned(t, &dialer.Dialer{ConnectTimeout: -1}, hung)
		time.Sleep(126*time.Second - time.Nanosecond)
		require.Equal(t, 1, n.Count("").Dialing)
		time.Sleep(time.Nanosecond)
		synctest.Wait()
		require.Zero(t, n.Count("").Dialing)
	})
}

func TestAnHTTPErrorNamesTheAddressAndTheCause(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		_, d := away(&dialer.Dialer{Policy: doubling, MaxElapsed: 5 * time.Second})
		_, err := fetch(ctx, &http.Transport{DialContext: d.DialContext}, where)
		require.EqualError(t, err, `Get "http://redis.test:6379/": dial tcp redis.test:6379: gave up after 3 tries in 3s, because the next wait would not end within MaxElapsed (5s): connect: connection refused`)
	})
}

// The same over real sockets; goleak watches the package.
func TestARequestOverLoopbackWaitsForTheServerToComeUp(t *testing.T) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	address := l.Addr().String()
	l.Close()
	d := &dialer.Dialer{Policy: quick, OnProgress: func(p dialer.Progress) {
		if p.Tries == 3 && !p.Done {
			l, err := net.Listen("tcp", address)
			require.NoError(t, err)
			serve(t, l)
		}
	}}
	transport := &http.Transport{DialContext: d.DialContext}
	defer transport.CloseIdleConnections()
	page, err := fetch(ctx, transport, address)
	require.NoError(t, err)
	require.Equal(t, "welcome", page)
}

func TestNothingRemainsOverLoopbackAfterCloseIdleConnections(t *testing.T) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	l.Close()
	ended := make(chan error, 1)
	d := &dialer.Dialer{Policy: &backoff.Exponential{Base: time.Hour}, MaxElapsed: -1}
	ctx, cancel := context.WithCancel(ctx)
	d.OnProgress = func(p dialer.Progress) {
		cancel() // the request is given up in the first wait
		if p.Done {
			ended <- p.Err
		}
	}
	transport := &http.Transport{DialContext: d.DialContext}
	_, err = fetch(ctx, transport, l.Addr().String())
	require.ErrorIs(t, err, context.Canceled)
	transport.CloseIdleConnections()
	require.ErrorIs(t, <-ended, context.Canceled)
}
