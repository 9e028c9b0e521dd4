//go:build linux

package clients_test

import (
	"context"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"github.com/redial-go/redial/bench/interop/internal/server"
	"github.com/redial-go/redial/dialer"
	"github.com/redial-go/redial/reconnect/backoff"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// outage is the longest that the clients here bridge.
const outage = 30 * time.Second

// retrying is a Dialer in a hurry, and the tries it reports.
func retrying() (*dialer.Dialer, <-chan int) {
	tries := make(chan int, 1)
	d := &dialer.Dialer{
		Policy:     &backoff.Exponential{Base: 20 * time.Millisecond, Cap: 200 * time.Millisecond},
		MaxElapsed: outage - time.Second,
		OnProgress: func(p dialer.Progress) {
			select {
			case tries <- p.Tries:
			default: // nobody looks
			}
		},
	}
	return d, tries
}

// bridge makes a call while s is away and starts s again when the call's dial has
// failed a few times. The call must succeed.
func bridge(t *testing.T, s *server.Server, tries <-chan int, call func(context.Context) error) {
	s.Kill()
	select { // of before
	case <-tries:
	default:
	}
	ctx, cancel := context.WithTimeout(t.Context(), outage)
	defer cancel()
	done := make(chan error, 1)
	go func() { done <- call(ctx) }()
	for n := 0; n < 5; {
		select {
		case n = <-tries:
		case err := <-done:
			require.FailNow(t, "the call did not wait", "%v", err)
		}
	}
	s.Start()
	require.NoError(t, <-done)
}

// impatient makes a call whose context ends while s is away, and demands that it
// returns then, with that.
func impatient(t *testing.T, s *server.Server, call func(context.Context) error) {
	s.Kill()
	ctx, cancel := context.WithTimeout(t.Context(), 300*time.Millisecond)
	defer cancel()
	began := time.Now()
	require.ErrorIs(t, call(ctx), context.DeadlineExceeded)
	require.Less(t, time.Since(began), time.Minute, "the Dialer gives up after two")

	ctx, cancel = context.WithCancel(t.Context())
	stop := time.AfterFunc(200*time.Millisecond, cancel)
	defer stop.Stop()
	require.ErrorIs(t, call(ctx), context.Canceled)
	require.Less(t, time.Since(began), time.Minute, "the Dialer gives up after two")
}
