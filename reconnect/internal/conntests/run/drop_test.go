package run_test

import (
	"context"
	"io"
	"math/rand/v2"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/redial-go/redial/conn"
	"github.com/redial-go/redial/conn/conntest"
	"github.com/redial-go/redial/reconnect"
	"github.com/redial-go/redial/reconnect/backoff"
	"github.com/redial-go/redial/reconnect/internal/conntests/scene"
)

// The tests of run.go that are about a server that accepts connections and soon drops them.

// Promise 3: the waits before a server that accepts connections and drops them are the same, to
// the nanosecond, as before one that refuses them. So they are if we end the sessions because
// of what the peer has sent.
func TestADroppedSessionIsLikeARefusedDial(t *testing.T) {
	policies := map[string]backoff.Policy{"default": nil, "short": &backoff.Exponential{Base: 100 * time.Millisecond, Cap: 5 * time.Second}}
	for name, s := range map[string]dropping{
		"dropped at once":     {0, scene.ErrLost},
		"dropped after 0.5 s": {time.Second / 2, scene.ErrLost},
		"dropped before 2 s":  {2*time.Second - 1, scene.ErrLost},
		"too big":             {5 * time.Second, &conn.TooBigError{Limit: 1}},
		"too big, later":      {time.Minute, &conn.TooBigError{Limit: 1}},
		"a broken frame":      {5 * time.Second, &conn.ProtocolError{Err: io.ErrNoProgress}},
	} {
		for kind, policy := range policies {
			t.Run(name+", "+kind, func(t *testing.T) {
				want := dropping{-1, s.cause}.waits(t, policy, run)
				require.Len(t, want, 40)
				require.Equal(t, want, s.waits(t, policy, run), "Run")
				require.Equal(t, want, s.waits(t, policy, keep), "Conn")
			})
		}
	}
}

// A session of 2 s is worth more than a refusal.
func TestASessionOfTwoSecondsIsNotLikeARefusedDial(t *testing.T) {
	want := dropping{-1, scene.ErrLost}.waits(t, nil, run)
	s := dropping{2 * time.Second, scene.ErrLost}
	require.NotEqual(t, want, s.waits(t, nil, run))
	require.Equal(t, s.waits(t, nil, run), s.waits(t, nil, keep))
}

// dropping is a server that ends each session with cause when it was ready for so long. If that
// is negative, it refuses each dial with cause.
type dropping struct {
	ready time.Duration
	cause error
}

// supervisor keeps a connection to a server open by dial, until that returns an error that is
// permanent.
type supervisor func(s dropping, dial func() error, o reconnect.RunOptions) error

func run(s dropping, dial func() error, o reconnect.RunOptions) error {
	return reconnect.Run(context.Background(), func(context.Context) (io.Closer, error) {
		return io.NopCloser(nil), dial()
	}, func(_ context.Context, _ io.Closer, session *reconnect.Session) error {
		session.Ready()
		time.Sleep(s.ready)
		return s.cause
	}, &o)
}

func keep(s dropping, dial func() error, o reconnect.RunOptions) error {
	c, err := reconnect.New(reconnect.DialFunc(func(context.Context) (conn.Conn, error) {
		fake := conntest.NewFake(nil)
		time.AfterFunc(s.ready, func() { fake.Fail(s.cause) })
		return fake, dial()
	}), &reconnect.Options{Run: o, Inbox: reconnect.Inbox{Overflow: reconnect.InboxDiscard}})
	if err == nil {
		<-c.Done()
		err = c.Err()
	}
	return err
}

// waits returns the first 40 waits before the server.
func (s dropping) waits(t *testing.T, policy backoff.Policy, by supervisor) (waits []time.Duration) {
	synctest.Test(t, func(t *testing.T) {
		lost := time.Now()
		err := by(s, func() error {
			if len(waits) == 40 {
				return backoff.Permanent(scene.ErrLost)
			}
			waits = append(waits, time.Since(lost))
			lost = time.Now().Add(max(s.ready, 0))
			if s.ready < 0 {
				return s.cause
			}
			return nil
		}, reconnect.RunOptions{Policy: policy, Rand: rand.NewPCG(1, 2)})
		require.ErrorIs(t, err, scene.ErrLost)
	})
	return waits
}
