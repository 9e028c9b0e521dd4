package reconnect_test

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/redial-go/redial/reconnect"
	"github.com/redial-go/redial/reconnect/backoff"
)

func TestTheGateIsNotToldAgainWhenAReadySessionIsLost(t *testing.T) {
	inBubble(t, func(t *testing.T, s *scene) {
		g := &gate{}
		o := run(every(time.Hour))
		o.Run.Gate, o.Run.Host = g, "h"
		s.open(&o)
		s.wantDial().accept().Fail(errLost)
		synctest.Wait()
		require.Equal(t, []string{"acquire h", "done " + backoff.ClassOK.String()}, g.all())
	})
}

// Promise 12: at the gate a Conn is connecting, not waiting any more.
func TestAtTheGateTheStateIsConnecting(t *testing.T) {
	inBubble(t, func(t *testing.T, s *scene) {
		o := run(every(time.Second))
		o.Run.Gate, o.Run.Host = &gate{}, "h"
		c := s.open(&o)
		s.wantDial().refuse(errLost)
		time.Sleep(1500 * time.Millisecond)
		s.wantNoDial()
		require.Equal(t, reconnect.StateConnecting, c.State())
	})
}

// Kick is for the wait of this connection, the gate for those of all.
func TestKickDoesNotOpenTheGate(t *testing.T) {
	inBubble(t, func(t *testing.T, s *scene) {
		o := run(every(0))
		o.Run.Gate, o.Run.Host = &gate{}, "h"
		c := s.open(&o)
		synctest.Wait()
		c.Kick()
		require.Equal(t, time.Second, s.wantDial().at)
	})
}

// shut is a Gate that lets nobody through.
type shut struct{}

func (shut) Acquire(context.Context, string) (func(backoff.Verdict), error) { return nil, errLost }

func TestAGateThatRefusesIsAFailedTry(t *testing.T) {
	inBubble(t, func(t *testing.T, s *scene) {
		o := run(every(time.Hour))
		o.Run.Gate, o.Run.Host = shut{}, "h"
		c := s.open(&o)
		s.wantNoDial()
		require.Equal(t, reconnect.StateWaiting, c.State())
		require.EqualError(t, c.Status().Err, "gate h: lost")
	})
}

// Promises 9 and 10: what the gate is told to wait is clamped as well.
// A dial that was cancelled is no evidence against the host.
func TestTheGateIsToldNothingOfADialThatWasCancelled(t *testing.T) {
	inBubble(t, func(t *testing.T, s *scene) {
		g := &gate{}
		o := run(every(time.Hour))
		o.Run.Gate, o.Run.Host = g, "h"
		c := s.open(&o)
		s.wantDial()
		c.Close()
		require.Equal(t, []string{"acquire h", "done " + backoff.ClassStop.String()}, g.all())
	})
}

func TestTheGateIsToldAClampedRetryAfter(t *testing.T) {
	inBubble(t, func(t *testing.T, s *scene) {
		var told []backoff.Verdict
		o := run(every(time.Hour))
		o.Run.Gate, o.Run.Host = open(func(v backoff.Verdict) { told = append(told, v) }), "h"
		o.Run.Classify = func(error) backoff.Verdict { return backoff.Verdict{Class: backoff.ClassOverload, RetryAfter: 1 << 60} }
		s.open(&o)
		s.wantDial().refuse(errLost)
		require.Equal(t, []backoff.Verdict{{Class: backoff.ClassOverload, RetryAfter: time.Hour}}, told)
	})
}

// open is a Gate that lets everybody through, and what it does with verdicts.
type open func(backoff.Verdict)

func (f open) Acquire(context.Context, string) (func(backoff.Verdict), error) { return f, nil }
