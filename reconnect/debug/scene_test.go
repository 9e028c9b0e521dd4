package debug

import (
	"context"
	"encoding/json"
	"errors"
	"math/rand/v2"
	"net/http"
	"net/http/httptest"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/redial-go/redial/conn"
	"github.com/redial-go/redial/conn/conntest"
	"github.com/redial-go/redial/reconnect"
	"github.com/redial-go/redial/reconnect/backoff"
)

// scene is a Page in virtual time, and a Dialer whose dials the test answers.
type scene struct {
	t     *testing.T
	page  *Page
	dials chan chan func() (conn.Conn, error)
}

// errLost has a text that a peer could have written.
var errLost = errors.New("planted-secret")

func (s *scene) Dial(ctx context.Context) (conn.Conn, error) {
	answer := make(chan func() (conn.Conn, error))
	select {
	case s.dials <- answer:
		return (<-answer)()
	case <-ctx.Done():
		return nil, context.Cause(ctx)
	}
}

func (*scene) Endpoint() string { return "ws://host/path" }

// every is a policy that waits d each time.
type every time.Duration

func (p every) Next(backoff.History, *rand.Rand) (backoff.Step, bool) {
	return backoff.Step{Wait: time.Duration(p)}, true
}

// inBubble runs a test in virtual time, with a Page.
func inBubble(t *testing.T, o *Options, f func(t *testing.T, s *scene)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		p := New(o)
		defer p.Close()
		f(t, &scene{t: t, page: p, dials: make(chan chan func() (conn.Conn, error))})
	})
}

// open starts a Conn that waits 10 s before each redial. The end of the test closes it.
func (s *scene) open(o reconnect.Options) *reconnect.Conn {
	o.Run.Policy = every(10 * time.Second)
	if o.OnMessage == nil {
		o.OnMessage = func(context.Context, reconnect.Message) {}
	}
	c, err := reconnect.New(s, &o)
	require.NoError(s.t, err)
	s.t.Cleanup(func() { c.Close(); <-c.Done() })
	return c
}

// accept waits for the next dial, and lets it succeed.
func (s *scene) accept() *conntest.Fake {
	fake := conntest.NewFake(&conntest.FakeOptions{Pings: true, Transport: true})
	answer := <-s.dials
	answer <- func() (conn.Conn, error) { return fake.Conn(), nil }
	synctest.Wait()
	return fake
}

// refuse waits for the next dial, and lets it fail.
func (s *scene) refuse(err error) {
	answer := <-s.dials
	answer <- func() (conn.Conn, error) { return nil, err }
	synctest.Wait()
}

// get asks the page as a local client does.
func get(p http.Handler, target string) *httptest.ResponseRecorder {
	rec := httptest.NewRecorder()
	p.ServeHTTP(rec, request(http.MethodGet, target))
	return rec
}

// request returns a request of a local client.
func request(method, target string) *http.Request {
	r := httptest.NewRequest(method, "http://localhost:6060"+target, nil)
	r.RemoteAddr = "127.0.0.1:1234"
	return r
}

// snapshot asks for JSON.
func (s *scene) snapshot(query string) (got Snapshot) {
	s.t.Helper()
	rec := get(s.page, "/?json&"+query)
	require.Equal(s.t, http.StatusOK, rec.Code, rec.Body)
	require.NoError(s.t, json.Unmarshal(rec.Body.Bytes(), &got))
	return got
}

// one asks for the Conn with an ID.
func (s *scene) one() connInfo {
	s.t.Helper()
	return s.snapshot("conn=1").Conns[0]
}

// kinds returns the kinds of events.
func kindsOf(events []eventInfo) (kinds []string) {
	for _, e := range events {
		kinds = append(kinds, e.Kind)
	}
	return kinds
}
