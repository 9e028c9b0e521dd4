package subscription_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/redial-go/redial/conn"
	"github.com/redial-go/redial/conn/conntest"
	"github.com/redial-go/redial/dialer"
	"github.com/redial-go/redial/reconnect"
	"github.com/redial-go/redial/reconnect/backoff"
	"github.com/redial-go/redial/reconnect/budget"
	"github.com/redial-go/redial/reconnect/subscription"
)

// scene is a venue on a network in memory, and a Conn with a Set that goes there.
type scene struct {
	t     *testing.T
	start time.Time

	net    *conntest.Network
	venue  *venue
	server *conntest.Server
	dialer *dialer.WebSocket

	so   subscription.Options[string]
	co   reconnect.Options
	set  *subscription.Set[string]
	conn *reconnect.Conn

	mu    sync.Mutex // guards what follows
	lines []string   // what OnReject and the reader saw
}

const addr = "feed.test:80"

// inBubble runs a test in virtual time. In the end nothing may be left.
func inBubble(t *testing.T, o *venueOptions, test func(t *testing.T, s *scene)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		n := new(conntest.Network)
		v := newVenue(o)
		s := &scene{t: t, start: time.Now(), net: n, venue: v, server: conntest.NewServer(n, addr, v.Serve)}
		s.dialer = &dialer.WebSocket{URL: "ws://feed.test/v1", DialContext: n.DialContext}
		s.so = subscription.Options[string]{Encode: encode, Answer: answer, Backoff: &backoff.Exponential{Base: time.Second, Cap: time.Second, Jitter: backoff.JitterNone}}
		s.co.Run.Policy = &backoff.Exponential{Base: 100 * time.Millisecond, Cap: 100 * time.Millisecond, Jitter: backoff.JitterNone}
		defer func() {
			if s.conn != nil {
				s.conn.Close()
				<-s.conn.Done()
			}
			s.server.Close()
			synctest.Wait()
			require.Empty(t, n.Unclosed())
		}()
		test(t, s)
	})
}

func encode(r *subscription.Request[string]) (conn.Message, error) {
	data, err := json.Marshal(venueRequest{Op: r.Op.String(), ID: r.ID, Keys: r.Keys})
	return conn.Message{Type: conn.Text, Data: data}, err
}

func answer(m reconnect.Message) (a subscription.Answer[string], ok bool) {
	var v venueMessage
	if err := json.Unmarshal(m.Data, &v); err != nil || !v.Answer {
		return a, false
	}
	a = subscription.Answer[string]{ID: v.ID, Keys: v.Keys, Refused: v.Refused, Tag: v.Tag, Ended: v.Op == "ended"}
	switch v.Op {
	case "subscribe":
		a.Op = subscription.OpSubscribe
	case "unsubscribe":
		a.Op = subscription.OpUnsubscribe
	}
	switch v.Error {
	case "":
	case "redundant":
		a.Err = subscription.ErrAlready
	default:
		a.Err = errors.New(v.Error)
	}
	return a, true
}

// note is for OnReject and OnMessage of most tests.
func (s *scene) note(format string, args ...any) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.lines = append(s.lines, fmt.Sprintf(format, args...))
}

func (s *scene) noted() []string {
	synctest.Wait()
	s.mu.Lock()
	defer s.mu.Unlock()
	lines := s.lines
	s.lines = nil
	return lines
}

// noteRejections lets the scene note what OnReject gets, and asks again.
func (s *scene) noteRejections() {
	s.so.OnReject = func(r subscription.Rejection[string]) subscription.Decision {
		s.note("rejected %d %s %v: %v", r.Session, r.Key, r.Op, r.Err)
		return subscription.DecisionRetry
	}
}

// noteRequests lets the scene note the keys of each request.
func (s *scene) noteRequests() {
	s.so.Encode = func(r *subscription.Request[string]) (conn.Message, error) {
		s.note("%v %s", r.Op, strings.Join(r.Keys, ","))
		return encode(r)
	}
}

// open makes the Set, wants keys, and starts the Conn.
func (s *scene) open(keys ...string) {
	s.t.Helper()
	s.openWith(func(*subscription.Set[string]) reconnect.Dialer { return s.dialer }, keys...)
}

// openWith is open with the dialer that dial makes.
func (s *scene) openWith(dial func(*subscription.Set[string]) reconnect.Dialer, keys ...string) {
	s.t.Helper()
	var err error
	s.set, err = subscription.New(&s.so)
	require.NoError(s.t, err)
	s.set.Add(keys...)
	s.co.Layers = append(s.co.Layers, s.set.Layer())
	if s.co.OnMessage == nil {
		s.co.OnMessage = func(_ context.Context, m reconnect.Message) { s.note("%d reads %s", m.Session, m.Data) }
	}
	s.conn, err = reconnect.New(dial(s.set), &s.co)
	require.NoError(s.t, err)
}

// ready is open, and waits until the first session is ready.
func (s *scene) ready(keys ...string) {
	s.t.Helper()
	s.open(keys...)
	require.NoError(s.t, s.conn.Await(s.t.Context(), reconnect.StateReady))
	synctest.Wait()
}

// synced requires that the set is synced now, and that the venue agrees.
func (s *scene) synced(keys ...string) {
	s.t.Helper()
	synctest.Wait()
	ctx, cancel := context.WithTimeout(s.t.Context(), time.Nanosecond)
	defer cancel()
	require.NoError(s.t, s.set.Synced(ctx))
	s.holds(keys...)
}

// holds requires that the venue has one connection, which has these keys.
func (s *scene) holds(keys ...string) {
	s.t.Helper()
	synctest.Wait()
	slices.Sort(keys)
	require.Equal(s.t, [][]string{append([]string{}, keys...)}, s.venue.Held())
}

// lose resets the connection, and waits until the next session is ready.
func (s *scene) lose() {
	s.t.Helper()
	for _, p := range s.net.Conns(addr) {
		p.Reset()
	}
	synctest.Wait()
	require.NoError(s.t, s.conn.Await(s.t.Context(), reconnect.StateReady))
	synctest.Wait()
}

func (s *scene) now() time.Duration { return time.Since(s.start) }

// paced limits what the client sends, as the policeman of a venue with these options wants it.
func (s *scene) paced(n int) { s.co.Pace = budget.Window{N: n, Per: time.Second} }

// symbols returns so many keys.
func symbols(n int) []string {
	keys := make([]string, n)
	for i := range keys {
		keys[i] = fmt.Sprintf("SYM%05d", i)
	}
	return keys
}

// loginFirst is an OnSession that sends one message, which the venue ignores.
func loginFirst(_ context.Context, o *reconnect.Opening) error {
	return o.Write(conn.TextMessage(`{"op":"login"}`))
}
