package debug

import (
	"context"
	"encoding/json"
	"net/http"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/redial-go/redial/conn"
	"github.com/redial-go/redial/reconnect"
)

// viewer is a browser that has a page open: a ResponseWriter that keeps what was written.
type viewer struct {
	cancel context.CancelFunc
	done   chan struct{}
	stuck  chan struct{} // nil: it reads; else each Write waits for it to be closed

	mu     sync.Mutex // guards what follows
	header http.Header
	status int
	text   strings.Builder
}

func (v *viewer) Header() http.Header { return v.header }
func (v *viewer) WriteHeader(status int) {
	v.mu.Lock()
	defer v.mu.Unlock()
	v.status = status
}
func (v *viewer) Flush() {}

func (v *viewer) Write(b []byte) (int, error) {
	if v.stuck != nil {
		<-v.stuck
	}
	v.mu.Lock()
	defer v.mu.Unlock()
	return v.text.Write(b)
}

// messages returns what has come since the last call.
func (v *viewer) messages(t *testing.T) (messages []message) {
	synctest.Wait()
	v.mu.Lock()
	defer v.mu.Unlock()
	for _, event := range strings.Split(strings.TrimSuffix(v.text.String(), "\n\n"), "\n\n") {
		data, ok := strings.CutPrefix(event, "data: ")
		if !ok {
			continue
		}
		var m message
		require.NoError(t, json.Unmarshal([]byte(data), &m), data)
		messages = append(messages, m)
	}
	v.text.Reset()
	return messages
}

// view opens a page.
func (s *scene) view(query string, stuck chan struct{}) *viewer {
	ctx, cancel := context.WithCancel(s.t.Context())
	v := &viewer{cancel: cancel, done: make(chan struct{}), stuck: stuck, header: http.Header{}}
	go func() {
		defer close(v.done)
		s.page.ServeHTTP(v, request(http.MethodGet, "/?live&"+query).WithContext(ctx))
	}()
	synctest.Wait()
	s.t.Cleanup(func() { cancel(); <-v.done })
	return v
}

// Whatever happens, a browser gets one update in an Interval, and none without news.
func TestUpdatesAreCoalesced(t *testing.T) {
	inBubble(t, nil, func(t *testing.T, s *scene) {
		s.page.Register("feed", s.open(reconnect.Options{}), nil)
		v := s.view("", nil)
		first := v.messages(t)
		require.Len(t, first, 1)
		require.Equal(t, []string{"c1"}, first[0].Order)
		require.Len(t, first[0].Parts, 5, "four parts and a row")
		require.Equal(t, "text/event-stream", v.header.Get("Content-Type"))
		time.Sleep(10 * time.Second)
		require.Less(t, len(v.messages(t)), 3, "nothing has happened, but that a column has grown")
		peer := s.accept()
		for range 100 {
			peer.Deliver(conn.TextMessage("x"))
		}
		time.Sleep(500 * time.Millisecond)
		next := v.messages(t)
		require.Len(t, next, 1)
		require.Contains(t, next[0].Parts["c1"], "100 received")
		require.Contains(t, next[0].Parts["summary"], `chip ready`)
		require.NotContains(t, next[0].Parts, "others")
		time.Sleep(499 * time.Millisecond)
		require.Empty(t, v.messages(t))
	})
}

func TestAConnComesAndGoesLive(t *testing.T) {
	inBubble(t, nil, func(t *testing.T, s *scene) {
		v := s.view("", nil)
		require.Empty(t, v.messages(t)[0].Order)
		unregister := s.page.Register("feed", s.open(reconnect.Options{}), nil)
		one := s.view("conn=1", nil)
		require.Contains(t, one.messages(t)[0].Parts["detail"], "connecting")
		time.Sleep(time.Second)
		require.Equal(t, []string{"c1"}, v.messages(t)[0].Order)
		unregister()
		time.Sleep(time.Second)
		m := v.messages(t)
		require.Len(t, m, 1)
		require.NotNil(t, m[0].Order)
		require.Empty(t, m[0].Order)
		gone := one.messages(t)
		require.Contains(t, gone[len(gone)-1].Parts["detail"], "is not known")
	})
}

// A search is made where the Conns are, for updates too.
func TestASearchHoldsForUpdates(t *testing.T) {
	inBubble(t, nil, func(t *testing.T, s *scene) {
		for _, name := range []string{"venue a", "Venue B", "chat"} {
			s.page.Register(name, s.open(reconnect.Options{}), nil)
		}
		require.Equal(t, []string{"c1", "c2"}, s.view("q=VENUE&show=away", nil).messages(t)[0].Order)
		require.Equal(t, []string{"c3"}, s.view("q=chat", nil).messages(t)[0].Order)
		require.Empty(t, s.view("show=ready", nil).messages(t)[0].Order)
		require.Len(t, s.view("q=ws://HOST", nil).messages(t)[0].Order, 3, "the endpoint counts too")
	})
}

// A place is free again when the request ends, and when the Page is closed nothing is left.
func TestStreamsAreBoundedAndEnd(t *testing.T) {
	inBubble(t, nil, func(t *testing.T, s *scene) {
		for range streamsMost - 2 {
			s.view("", nil)
		}
		first, second := s.view("", nil), s.view("", nil)
		third := s.view("", nil)
		<-third.done
		require.Equal(t, http.StatusServiceUnavailable, third.status)
		first.cancel()
		<-first.done
		fourth := s.view("", nil)
		require.Len(t, fourth.messages(t), 1)
		require.NoError(t, s.page.Close())
		<-second.done
		<-fourth.done
		fifth := s.view("", nil)
		<-fifth.done
		require.Equal(t, http.StatusServiceUnavailable, fifth.status)
	})
}

// A browser that does not read holds up itself: the connections go on, and others see them.
func TestABrowserThatDoesNotReadHoldsUpNobody(t *testing.T) {
	inBubble(t, nil, func(t *testing.T, s *scene) {
		s.page.Register("feed", s.open(reconnect.Options{}), nil)
		stuck := make(chan struct{})
		s.view("", stuck)
		other := s.view("", nil)
		for range 10 {
			s.accept().Fail(errLost)
		}
		time.Sleep(time.Second)
		require.NotEmpty(t, other.messages(t))
		require.Equal(t, uint64(10), s.one().Session)
		close(stuck)
	})
}

// An idle stream writes now and then, so that a browser that is gone is noticed.
func TestAnIdleStreamShowsThatItLives(t *testing.T) {
	inBubble(t, nil, func(t *testing.T, s *scene) {
		v := s.view("", nil)
		v.messages(t)
		time.Sleep(61 * time.Second)
		v.mu.Lock()
		defer v.mu.Unlock()
		require.Equal(t, strings.Repeat(": alive\n\n", 4), v.text.String())
	})
}
