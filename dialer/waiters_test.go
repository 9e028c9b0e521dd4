package dialer_test

import (
	"context"
	"net"
	"net/http"
	"slices"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/redial-go/redial/dialer"
	"github.com/redial-go/redial/reconnect/backoff"
	"github.com/redial-go/redial/reconnect/backoff/retry"
)

// storm is a server that is away and comes back, and a client that keeps sending requests.
type storm struct {
	back          atomic.Bool
	tries, dialed atomic.Int64
	inProgress    atomic.Int64 // calls of DialContext
	d             *dialer.Dialer
	transport     *http.Transport
	listener      *pipeListener
}

// withStorm runs a test in virtual time. The transport has at most perHost connections, or any number
// if perHost is 0.
func withStorm(t *testing.T, perHost int, test func(s *storm)) {
	synctest.Test(t, func(t *testing.T) {
		s := &storm{listener: &pipeListener{make(chan net.Conn), make(chan struct{})}}
		s.d = &dialer.Dialer{DialOnce: func(context.Context, string, string) (net.Conn, error) {
			s.tries.Add(1)
			time.Sleep(time.Millisecond)
			if !s.back.Load() {
				return nil, syscall.ECONNREFUSED
			}
			s.dialed.Add(1)
			a, b := net.Pipe()
			s.listener.conns <- b
			return a, nil
		}}
		s.transport = &http.Transport{
			MaxConnsPerHost: perHost,
			DialContext: func(ctx context.Context, network, address string) (net.Conn, error) {
				s.inProgress.Add(1)
				defer s.inProgress.Add(-1)
				return s.d.DialContext(ctx, network, address)
			},
		}
		serve(t, s.listener)
		test(s)
		time.Sleep(5 * time.Minute) // no dial of net/http outlives MaxElapsed
		s.transport.CloseIdleConnections()
	})
}

// requests sends 50 requests per second, each with a limit of a second, and returns the number of
// those that were answered.
func (s *storm) requests(d time.Duration) int64 {
	var all sync.WaitGroup
	var answered atomic.Int64
	for range int(50 * d.Seconds()) {
		all.Go(func() {
			ctx, cancel := context.WithTimeout(ctx, time.Second)
			defer cancel()
			if _, err := fetch(ctx, s.transport, where); err == nil {
				answered.Add(1)
			}
		})
		time.Sleep(20 * time.Millisecond)
	}
	all.Wait()
	return answered.Load()
}

// pipeListener accepts connections in memory.
type pipeListener struct {
	conns chan net.Conn
	done  chan struct{}
}

func (l *pipeListener) Accept() (net.Conn, error) {
	select {
	case c := <-l.conns:
		return c, nil
	case <-l.done:
		return nil, net.ErrClosed
	}
}

func (l *pipeListener) Close() error {
	close(l.done)
	return nil
}

func (l *pipeListener) Addr() net.Addr { return &net.TCPAddr{} }

// net/http continues the dials of requests that were given up.
func TestDetachedDialsDoNotPileUp(t *testing.T) {
	withStorm(t, 0, func(s *storm) {
		require.Zero(t, s.requests(time.Minute))
		t.Logf("%d tries, %d dials in progress", s.tries.Load(), s.inProgress.Load())
		require.Less(t, s.tries.Load(), int64(3000*11/10)) // net.Dialer makes 3,000
		require.LessOrEqual(t, s.inProgress.Load(), int64(8))
		s.back.Store(true)
		require.Equal(t, int64(500), s.requests(10*time.Second))
		require.LessOrEqual(t, s.dialed.Load(), int64(9))
		require.Zero(t, s.inProgress.Load())
	})
}

// A pool with four connections, all of which wait when the server comes back.
func TestPoolWhoseDialsAllWaitIsBackSoon(t *testing.T) {
	var late []time.Duration
	for range 21 {
		withStorm(t, 4, func(s *storm) {
			require.Zero(t, s.requests(time.Minute))
			require.Less(t, s.tries.Load(), int64(3*60+20))
			s.back.Store(true)
			began := time.Now()
			for s.dialed.Load() == 0 {
				s.requests(20 * time.Millisecond)
			}
			late = append(late, time.Since(began))
		})
	}
	slices.Sort(late)
	t.Logf("median %v, longest %v", late[len(late)/2], late[len(late)-1])
	require.Less(t, late[len(late)/2], time.Second)
}

func TestNinthDialToAnAddressDoesNotWait(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		_, d := away(&dialer.Dialer{})
		dials, cancel := context.WithCancel(ctx)
		var all sync.WaitGroup
		for range 8 {
			all.Go(func() { _, _ = d.DialContext(dials, "tcp", where) })
		}
		synctest.Wait()
		_, err := d.DialContext(ctx, "tcp", where)
		require.EqualError(t, err, "dial tcp redis.test:6379: gave up: other calls already try this address again, "+
			"after 1 try in 0s: connect: connection refused")
		require.ErrorIs(t, err, backoff.ErrGaveUp)
		require.NotErrorIs(t, err, retry.ErrNoBudget)
		require.ErrorIs(t, err, syscall.ECONNREFUSED)

		other, end := context.WithTimeout(ctx, time.Minute)
		defer end()
		began := time.Now()
		_, err = d.DialContext(other, "tcp", "other.test:1")
		require.ErrorIs(t, err, context.DeadlineExceeded, "another address")
		require.Equal(t, time.Minute, time.Since(began))

		cancel()
		all.Wait()
		began = time.Now()
		again, end := context.WithTimeout(ctx, time.Minute)
		defer end()
		for range 8 {
			all.Go(func() {
				_, err := d.DialContext(again, "tcp", where)
				assert.ErrorIs(t, err, context.DeadlineExceeded, "after the eight have returned")
			})
		}
		all.Wait()
		require.Equal(t, time.Minute, time.Since(began))
	})
}

// connects reports an error of a dial to where.
func connects(t *testing.T, d *dialer.Dialer) {
	t.Helper()
	_, err := d.DialContext(ctx, "tcp", where)
	assert.NoError(t, err)
}

// The policy here waits for an hour, so that only the success of another dial ends the waits.
func TestSuccessReleasesWaitersOneAtATime(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var back atomic.Bool
		var inProgress, peak atomic.Int64
		d := &dialer.Dialer{
			Policy:     &backoff.Exponential{Base: time.Hour, Jitter: backoff.JitterNone},
			MaxElapsed: -1,
		}
		d.DialOnce = func(context.Context, string, string) (net.Conn, error) {
			if !back.Load() {
				return nil, syscall.ECONNREFUSED
			}
			peak.Store(max(peak.Load(), inProgress.Add(1)))
			defer inProgress.Add(-1)
			time.Sleep(time.Second)
			return new(net.TCPConn), nil
		}
		var all sync.WaitGroup
		for range 8 {
			all.Go(func() { connects(t, d) })
		}
		time.Sleep(time.Minute)
		back.Store(true)
		began := time.Now()
		connects(t, d)
		all.Wait()
		require.Equal(t, 9*time.Second, time.Since(began))
		require.Equal(t, int64(1), peak.Load())
	})
}

// The first call that follows a success hangs in its try. The others follow when it ends, or when
// another call has connected.
func TestSuccessReleasesWaitersPastOneThatHangs(t *testing.T) {
	for _, row := range []struct {
		hangs  time.Duration
		second bool // another call connects meanwhile
		want   time.Duration
	}{
		{hangs: 3 * time.Second, second: false, want: (1 + 2 + 7) * time.Second},
		{hangs: time.Hour, second: true, want: (1 + 4 + 1 + 7) * time.Second},
	} {
		synctest.Test(t, func(t *testing.T) {
			var back atomic.Bool
			type hangs struct{}
			d := &dialer.Dialer{
				Policy:         &backoff.Exponential{Base: 2 * time.Hour, Jitter: backoff.JitterNone},
				MaxElapsed:     -1,
				ConnectTimeout: 2 * time.Hour,
			}
			d.DialOnce = func(ctx context.Context, _, _ string) (net.Conn, error) {
				switch {
				case !back.Load():
					return nil, syscall.ECONNREFUSED
				case ctx.Value(hangs{}) != nil:
					<-ctx.Done()
					return nil, ctx.Err()
				}
				time.Sleep(time.Second)
				return new(net.TCPConn), nil
			}
			short, cancel := context.WithTimeout(context.WithValue(ctx, hangs{}, true), time.Minute+row.hangs)
			defer cancel()
			var hanging, others sync.WaitGroup
			hanging.Go(func() {
				_, err := d.DialContext(short, "tcp", where)
				assert.Error(t, err)
			})
			synctest.Wait()
			for range 7 {
				others.Go(func() { connects(t, d) })
			}
			time.Sleep(time.Minute)
			back.Store(true)
			began := time.Now()
			connects(t, d)
			if row.second {
				time.Sleep(4 * time.Second)
				connects(t, d)
			}
			others.Wait()
			require.Equal(t, row.want, time.Since(began))
			hanging.Wait()
		})
	}
}

// A call hangs in its second try, which has begun after its wait, when another call connects.
func TestSuccessReleasesNoCallThatTries(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var back atomic.Bool
		var tries int
		type hangs struct{}
		d := &dialer.Dialer{
			Policy:         &backoff.Exponential{Base: time.Hour, Jitter: backoff.JitterNone},
			MaxElapsed:     -1,
			ConnectTimeout: 2 * time.Hour,
		}
		d.DialOnce = func(ctx context.Context, _, _ string) (net.Conn, error) {
			if ctx.Value(hangs{}) != nil {
				if tries++; tries == 2 {
					<-ctx.Done()
					return nil, ctx.Err()
				}
			}
			if !back.Load() {
				return nil, syscall.ECONNREFUSED
			}
			time.Sleep(time.Second)
			return new(net.TCPConn), nil
		}
		short, cancel := context.WithTimeout(context.WithValue(ctx, hangs{}, true), 2*time.Hour)
		defer cancel()
		var hanging, others sync.WaitGroup
		hanging.Go(func() {
			_, err := d.DialContext(short, "tcp", where)
			assert.Error(t, err)
		})
		time.Sleep(time.Minute)
		for range 3 {
			others.Go(func() { connects(t, d) })
		}
		time.Sleep(time.Hour - 30*time.Second) // the others wait for 30 s more
		back.Store(true)
		began := time.Now()
		connects(t, d)
		others.Wait()
		require.Equal(t, 4*time.Second, time.Since(began))
		hanging.Wait()
		require.Equal(t, 2, tries)
	})
}

// The only call of a Dialer waits like connect_retry: its waits grow up to a minute.
func TestLoneDialWaitsLongerAndLonger(t *testing.T) {
	var tries, runs, longest float64
	for range 20 {
		synctest.Test(t, func(t *testing.T) {
			n, d := away(&dialer.Dialer{})
			_, err := d.DialContext(ctx, "tcp", where)
			require.ErrorIs(t, err, backoff.ErrGaveUp)
			s := seconds(n)
			tries += float64(len(s))
			runs++
			longest = max(longest, s[len(s)-1])
		})
	}
	t.Logf("%.1f tries, the last one after at most %.0f s", tries/runs, longest)
	require.Less(t, tries/runs, 14.0)
	require.Greater(t, longest, 60.0)
}
