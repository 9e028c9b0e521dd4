package current_test

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"github.com/redial-go/redial/reconnect"
	"github.com/redial-go/redial/reconnect/backoff"
	"github.com/redial-go/redial/reconnect/current"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// client is a client of some library.
type client struct {
	net.Conn
	dead atomic.Bool
}

// publish sends text and waits for the answer.
func (c *client) publish(text string) (answer string, err error) {
	if _, err := fmt.Fprint(c, text); err != nil {
		return "", err
	}
	buf := make([]byte, 2)
	n, err := io.ReadFull(c, buf)
	return string(buf[:n]), err
}

func TestWaitReturnsTheClientThatIsSetNext(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var o current.Of[*client]
		got := make(chan *client, 2)
		for range 2 {
			go func() { c, _ := o.Wait(t.Context()); got <- c }()
		}
		synctest.Wait()
		require.Empty(t, got)
		c := new(client)
		_, remove := o.Set(t.Context(), c)
		defer remove()
		synctest.Wait()
		require.Equal(t, []*client{c, c}, []*client{<-got, <-got})
	})
}

// A library may have one client object. A call that fails late is about the session in which it
// began.
func TestLateFailOfReusedClient(t *testing.T) {
	failure := errors.New("broken pipe")
	for name, begin := range map[string]func(o *current.Of[*client]) (fail func(error)){
		"Wait": func(o *current.Of[*client]) func(error) {
			c, err := o.Wait(t.Context())
			require.NoError(t, err)
			return func(err error) { o.Fail(c, err) }
		},
		"WaitSession": func(o *current.Of[*client]) func(error) {
			_, fail, err := o.WaitSession(t.Context())
			require.NoError(t, err)
			return fail
		},
	} {
		var o current.Of[*client]
		c := new(client)
		_, remove := o.Set(t.Context(), c)
		late := begin(&o)
		remove()
		second, remove := o.Set(t.Context(), c)
		defer remove()
		late(failure)
		require.NoError(t, second.Err(), name)
		fail := begin(&o)
		if name == "WaitSession" {
			late(failure)
			require.NoError(t, second.Err(), "late is about the first session")
		}
		fail(failure)
		require.Equal(t, failure, context.Cause(second), name)
	}
}

func TestWaitSessionReturnsErrorOfEnd(t *testing.T) {
	var o current.Of[*client]
	o.End(io.ErrUnexpectedEOF)
	v, fail, err := o.WaitSession(t.Context())
	require.ErrorIs(t, err, io.ErrUnexpectedEOF)
	require.Nil(t, v)
	fail(err)
}

// Each of these ends a client, so that Wait does not return it.
func TestADeadClientIsNotHandedOut(t *testing.T) {
	failure := errors.New("broken pipe")
	for name, end := range map[string]func(o *current.Of[*client], c *client, cancel, remove func()){
		"its context": func(_ *current.Of[*client], _ *client, cancel, _ func()) { cancel() },
		"remove":      func(_ *current.Of[*client], _ *client, _, remove func()) { remove(); remove() },
		"Alive":       func(_ *current.Of[*client], c *client, _, _ func()) { c.dead.Store(true) },
		"Fail":        func(o *current.Of[*client], c *client, _, _ func()) { o.Fail(c, failure); o.Fail(c, nil) },
	} {
		synctest.Test(t, func(t *testing.T) {
			o := current.Of[*client]{Alive: func(c *client) bool { return !c.dead.Load() }}
			ctx, cancel := context.WithCancel(t.Context())
			c, next := new(client), new(client)
			of, remove := o.Set(ctx, c)
			got, err := o.Wait(t.Context())
			require.NoError(t, err, name)
			require.Same(t, c, got, name)
			end(&o, c, cancel, remove)
			if name == "Fail" {
				require.Equal(t, failure, context.Cause(of))
			} else {
				require.Equal(t, name != "Alive", of.Err() != nil, name)
			}
			short, stop := context.WithTimeout(t.Context(), time.Minute)
			defer stop()
			_, err = o.Wait(short)
			require.ErrorIs(t, err, context.DeadlineExceeded, name)
			_, removeNext := o.Set(t.Context(), next)
			defer removeNext()
			remove()       // is not next's
			o.Fail(c, nil) // neither
			got, err = o.Wait(t.Context())
			require.NoError(t, err, name)
			require.Same(t, next, got, name)
			cancel()
		})
	}
}

func TestWaitEndsWithItsContextAndWithEnd(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var o current.Of[*client]
		cause := errors.New("enough")
		ctx, cancel := context.WithCancelCause(t.Context())
		errs := make(chan error, 2)
		go func() { _, err := o.Wait(ctx); errs <- err }()
		synctest.Wait()
		cancel(cause)
		require.Equal(t, cause, <-errs)
		go func() { _, err := o.Wait(t.Context()); errs <- err }()
		synctest.Wait()
		gaveUp := errors.New("gave up")
		o.End(gaveUp)
		o.End(nil)
		require.Equal(t, gaveUp, <-errs)
		_, remove := o.Set(t.Context(), new(client))
		defer remove()
		_, err := o.Wait(t.Context())
		require.Equal(t, gaveUp, err)
		_, err = o.Wait(ctx)
		require.Equal(t, cause, err)
		var closed current.Of[*client]
		closed.End(nil)
		_, err = closed.Wait(t.Context())
		require.ErrorIs(t, err, net.ErrClosed)
	})
}

func TestWaitForAClientThatIsThereAllocatesNothing(t *testing.T) {
	o := current.Of[*client]{Alive: func(c *client) bool { return !c.dead.Load() }}
	_, remove := o.Set(t.Context(), new(client))
	defer remove()
	require.Zero(t, testing.AllocsPerRun(100, func() { _, _ = o.Wait(t.Context()) }))
}

// Eight goroutines publish over real sockets, and the server hangs up again and again. The library does not
// notice that by itself: only a failed publish shows the loss. No goroutine gets a client again after its
// publish has failed, so it has at most one failed publish in a session.
func TestAFailedPublishIsTheLastOfItsClient(t *testing.T) {
	const publishers, sessions = 8, 20
	server, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	defer server.Close()
	var serving sync.WaitGroup
	serving.Go(func() {
		for {
			nc, err := server.Accept()
			if err != nil {
				return
			}
			for lines := bufio.NewReader(nc); err == nil; {
				if _, err = lines.ReadString('\n'); err == nil && lines.Buffered() > 200 {
					break // hangs up with bytes unread, so that the client gets a reset
				}
			}
			nc.Close()
		}
	})
	var o current.Of[*client]
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	var running sync.WaitGroup
	served := 0
	running.Go(func() {
		o.End(reconnect.Run(ctx, func(ctx context.Context) (*client, error) {
			nc, err := new(net.Dialer).DialContext(ctx, "tcp", server.Addr().String())
			return &client{Conn: nc}, err
		}, func(ctx context.Context, c *client, s *reconnect.Session) error {
			if served++; served > sessions {
				cancel()
			}
			s.Ready()
			ctx, remove := o.Set(ctx, c)
			defer remove()
			<-ctx.Done()
			return context.Cause(ctx)
		}, &reconnect.RunOptions{Policy: &backoff.Exponential{Base: time.Millisecond, Cap: 2 * time.Millisecond}}))
	})
	failed := make([]int, publishers)
	var publishing sync.WaitGroup
	for i := range publishers {
		publishing.Go(func() {
			for last := (*client)(nil); ; {
				c, err := o.Wait(t.Context())
				if err != nil {
					return // Run has ended
				}
				if c == last {
					t.Error("a client that has failed came again")
					return
				}
				if _, err := fmt.Fprintln(c, "a message from", i); err != nil {
					failed[i]++
					last = c
					o.Fail(c, err)
				}
			}
		})
	}
	publishing.Wait()
	running.Wait()
	server.Close()
	serving.Wait()
	for _, n := range failed {
		require.LessOrEqual(t, n, sessions+1)
	}
	t.Logf("failed publishes of %d goroutines in %d sessions: %v", publishers, sessions, failed)
}
