package dialer

import (
	"context"
	"errors"
	"net"
	"net/http"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/redial-go/redial/conn/conntest"
	"github.com/redial-go/redial/reconnect/backoff"
)

func TestConnectingHasALimitOfItsOwn(t *testing.T) {
	inVenue(t, func(t *testing.T, v *venue) {
		v.network.Fault(venueAddr, conntest.Fault{Hang: true})
		e := v.fail(t, t.Context(), 10*time.Second)
		require.EqualError(t, e, "dial ws://venue.example/feed: not connected within 10s")
		require.ErrorIs(t, e, context.DeadlineExceeded)
		require.Equal(t, backoff.ClassOverload, backoff.Classify(e).Class)
	})
}

func TestHandshakingHasALimitFromTheEndOfConnecting(t *testing.T) {
	inVenue(t, func(t *testing.T, v *venue) {
		v.network.Fault(venueAddr, conntest.Fault{Late: 9 * time.Second})
		v.Next(conntest.Hang)
		e := v.fail(t, t.Context(), 39*time.Second)
		require.EqualError(t, e, "dial ws://venue.example/feed: handshake not answered within 30s")
		require.ErrorIs(t, e, context.DeadlineExceeded)
	})
}

func TestFieldsSetTheLimits(t *testing.T) {
	inVenue(t, func(t *testing.T, v *venue) {
		v.dialer.ConnectTimeout, v.dialer.HandshakeTimeout = 2*time.Second, 3*time.Second
		v.network.Fault(venueAddr, conntest.Fault{Hang: true}, conntest.Fault{})
		v.Next(conntest.Hang)
		v.fail(t, t.Context(), 2*time.Second)
		v.fail(t, t.Context(), 3*time.Second)
	})
}

func TestTheTryInTheContextOverridesTheLimits(t *testing.T) {
	inVenue(t, func(t *testing.T, v *venue) {
		v.dialer.ConnectTimeout, v.dialer.HandshakeTimeout = 2*time.Second, 3*time.Second
		v.network.Fault(venueAddr, conntest.Fault{Hang: true}, conntest.Fault{})
		v.Next(conntest.Hang)
		ctx := backoff.WithTry(t.Context(), backoff.Try{Connect: 5 * time.Second, Handshake: time.Minute})
		v.fail(t, ctx, 5*time.Second)
		v.fail(t, ctx, time.Minute)
	})
}

func TestAHandshakeThatTricklesIsEnded(t *testing.T) {
	inVenue(t, func(t *testing.T, v *venue) {
		v.Next(conntest.Trickle(1, time.Second, v.Accept))
		v.fail(t, t.Context(), 30*time.Second)
	})
}

// Fact 5: coder/websocket reads on for 3 s after a 101 that it does not accept.
func TestContextEndsTheCheckOfTheAnswer(t *testing.T) {
	inVenue(t, func(t *testing.T, v *venue) {
		v.Next(conntest.BadAccept)
		ctx, cancel := context.WithTimeout(t.Context(), 200*time.Millisecond)
		defer cancel()
		e := v.fail(t, ctx, 200*time.Millisecond)
		require.ErrorIs(t, e, context.DeadlineExceeded)
	})
}

func TestAnAnswerThatIsNotAcceptedSaysWhy(t *testing.T) {
	inVenue(t, func(t *testing.T, v *venue) {
		v.Next(conntest.BadAccept)
		e := v.fail(t, t.Context(), 3*time.Second)
		require.Equal(t, 101, e.StatusCode)
		require.Contains(t, e.Error(), "dial ws://venue.example/feed: not a WebSocket endpoint: WebSocket protocol violation: invalid Sec-WebSocket-Accept")
		require.Equal(t, backoff.ClassSlow, backoff.Classify(e).Class)
	})
}

// The attempt ends with its context at whatever stage, with the context's cause.
func TestContextEndsTheAttemptAtEachStage(t *testing.T) {
	errOver := errors.New("session over")
	for name, arrange := range map[string]func(v *venue){
		"prepare": func(v *venue) {
			v.dialer.Prepare = func(ctx context.Context, _ *Request) error { <-ctx.Done(); return ctx.Err() }
		},
		"connect":  func(v *venue) { v.network.Fault(venueAddr, conntest.Fault{Hang: true}) },
		"accept":   func(v *venue) { v.network.Fault(venueAddr, conntest.Fault{AcceptLate: time.Minute}) },
		"upgrade":  func(v *venue) { v.Next(conntest.Hang) },
		"trickle":  func(v *venue) { v.Next(conntest.Trickle(1, time.Second, v.Accept)) },
		"verify":   func(v *venue) { v.Next(conntest.BadAccept) },
		"400 body": func(v *venue) { v.Next(status400WithoutBody) },
	} {
		t.Run(name, func(t *testing.T) {
			inVenue(t, func(t *testing.T, v *venue) {
				arrange(v)
				ctx, cancel := context.WithCancelCause(t.Context())
				time.AfterFunc(time.Second, func() { cancel(errOver) })
				require.ErrorIs(t, v.fail(t, ctx, time.Second), errOver)
				time.Sleep(time.Hour) // nothing is left that could still happen
			})
		})
	}
}

func status400WithoutBody(w http.ResponseWriter, r *http.Request) {
	w.Header().Set("Content-Length", "100")
	w.WriteHeader(400)
	http.NewResponseController(w).Flush()
	<-r.Context().Done()
}

func TestContextThatHasEndedOpensNoSocket(t *testing.T) {
	inVenue(t, func(t *testing.T, v *venue) {
		ctx, cancel := context.WithCancel(t.Context())
		cancel()
		e := v.fail(t, ctx, 0)
		require.EqualError(t, e, "dial ws://venue.example/feed: context canceled")
		require.Empty(t, v.network.Dials(""))
	})
}

// Fact 4: net/http detaches a dial from its request. Ours is waited for.
func TestACancelledDialStopsDialling(t *testing.T) {
	inVenue(t, func(t *testing.T, v *venue) {
		var flying atomic.Int32
		v.dialer.DialContext = func(ctx context.Context, network, addr string) (net.Conn, error) {
			flying.Add(1)
			defer flying.Add(-1)
			<-ctx.Done()
			time.Sleep(time.Second) // some dials do not see at once that they are over
			return nil, ctx.Err()
		}
		ctx, cancel := context.WithTimeout(t.Context(), 20*time.Millisecond)
		defer cancel()
		v.fail(t, ctx, 1020*time.Millisecond)
		require.Zero(t, flying.Load())
	})
}

func TestADialThatAnswersTooLateIsClosed(t *testing.T) {
	inVenue(t, func(t *testing.T, v *venue) {
		v.network.Fault(venueAddr, conntest.Fault{Late: time.Minute, Deaf: true})
		e := v.fail(t, t.Context(), time.Minute)
		require.ErrorContains(t, e, "not connected within 10s")
	})
}

func TestHeadersAreCapped(t *testing.T) {
	for limit, ok := range map[int64]bool{0: false, 2 << 20: true} {
		inVenue(t, func(t *testing.T, v *venue) {
			v.dialer.MaxHeaderBytes = limit
			v.Next(func(w http.ResponseWriter, r *http.Request) {
				for range 16 {
					w.Header().Add("X-Large", strings.Repeat("x", 64<<10))
				}
				v.Accept(w, r)
			})
			c, err := v.dialer.Dial(t.Context())
			if ok {
				require.NoError(t, err)
				c.CloseNow()
				return
			}
			require.ErrorContains(t, err, "server response headers exceeded 65536 bytes")
			require.Equal(t, backoff.ClassSlow, backoff.Classify(err).Class)
		})
	}
}

func TestTransportIsTheStartButNotUsed(t *testing.T) {
	inVenue(t, func(t *testing.T, v *venue) {
		v.dialer.Transport = &http.Transport{DialContext: v.dialer.DialContext, ForceAttemptHTTP2: true}
		v.dialer.DialContext = nil
		v.dial(t).CloseNow()
		require.Len(t, v.network.Dials(venueAddr), 1)
	})
}
