package receive_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"net/http"
	"slices"
	"strconv"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/coder/websocket"
	"github.com/stretchr/testify/require"

	"github.com/redial-go/redial/conn"
	"github.com/redial-go/redial/reconnect"
	"github.com/redial-go/redial/reconnect/internal/conntests/scene"
)

// ticker is a server that makes an event each 100 ms for an hour. It sends them by a WebSocket from the
// subscription on, and cuts each connection after 30 s until the hour is over. By HTTP it tells how
// many events there were.
type ticker struct {
	mu     sync.Mutex // guards what follows
	events int
	live   map[*websocket.Conn]bool // that are subscribed
}

const hourOfEvents = 36_000

// run makes the events.
func (s *ticker) run(ctx context.Context) {
	for range hourOfEvents {
		time.Sleep(100 * time.Millisecond)
		s.mu.Lock()
		s.events++
		event, live := strconv.Itoa(s.events), slices.Collect(maps.Keys(s.live))
		s.mu.Unlock()
		for _, c := range live {
			_ = c.Write(ctx, websocket.MessageText, []byte(event)) // it may be closed just now
		}
	}
}

// serve serves one WebSocket. It answers the subscription, which takes 50 ms.
func (s *ticker) serve(ctx context.Context, c *websocket.Conn, _ *http.Request) {
	end := time.AfterFunc(30*time.Second, func() {
		s.mu.Lock()
		over := s.events == hourOfEvents
		s.mu.Unlock()
		if !over {
			c.CloseNow()
		}
	})
	defer end.Stop()
	if _, _, err := c.Read(ctx); err != nil {
		return
	}
	time.Sleep(50 * time.Millisecond)
	s.mu.Lock()
	s.live[c] = true
	s.mu.Unlock()
	err := c.Write(ctx, websocket.MessageText, []byte(`"subscribed"`))
	for err == nil {
		_, _, err = c.Read(ctx)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.live, c)
}

// snapshot is an answer by HTTP.
func (s *ticker) snapshot(w http.ResponseWriter, _ *http.Request) {
	s.mu.Lock()
	defer s.mu.Unlock()
	fmt.Fprint(w, s.events)
}

// tickReader is complete after a snapshot, and from there on for as long as each event follows the last.
type tickReader struct {
	t        *testing.T
	client   http.Client
	complete bool
	last     int // event, while it is complete
	missing  int
	seams    int
	marks    int
}

// message takes a message.
func (r *tickReader) message(m reconnect.Message) {
	n, err := strconv.Atoi(string(m.Data))
	require.NoError(r.t, err)
	if r.complete {
		r.missing += max(n-r.last-1, 0)
		r.last = max(r.last, n)
	}
}

// seam takes a seam.
func (r *tickReader) seam(s *reconnect.Seam) {
	if s.Refetch {
		r.marks++
	} else {
		r.seams++
		r.complete = false
	}
}

// refetch fetches a snapshot.
func (r *tickReader) refetch(ctx context.Context) {
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, "http://feed.test:81/", nil)
	require.NoError(r.t, err)
	response, err := r.client.Do(request)
	require.NoError(r.t, err)
	defer response.Body.Close()
	require.NoError(r.t, json.NewDecoder(response.Body).Decode(&r.last))
	r.complete = true
}

// subscribeTicker is OnSession.
func subscribeTicker(_ context.Context, o *reconnect.Opening) error {
	if err := o.Write(conn.TextMessage(`{"op":"subscribe"}`)); err != nil {
		return err
	}
	_, err := o.Read() // the answer, or an event, which shows the same
	return err
}

// withTicker runs a client through the hour, and a minute more.
func withTicker(t *testing.T, client func(ctx context.Context, server *scene.WSServer, r *tickReader)) *tickReader {
	var result tickReader
	r := &tickReader{}
	s := &ticker{live: map[*websocket.Conn]bool{}}
	scene.WithWSServer(t, s.serve, func(t *testing.T, server *scene.WSServer) {
		r.t = t
		l, err := server.Network.Listen("feed.test:81")
		require.NoError(t, err)
		snapshots := &http.Server{Handler: http.HandlerFunc(s.snapshot)}
		transport := &http.Transport{DialContext: server.Network.DialContext, DisableKeepAlives: true}
		r.client.Transport = transport
		var work sync.WaitGroup
		work.Go(func() { snapshots.Serve(l) })
		work.Go(func() { s.run(t.Context()) })
		ctx, stop := context.WithTimeout(t.Context(), time.Hour+time.Minute)
		defer stop()
		client(ctx, server, r)
		synctest.Wait()
		result = *r // before the end of the Conn has its seam
		snapshots.Close()
		work.Wait()
	})
	return &result
}

// pullTicker is README's program, with a refetch at the marks, or at the seams.
func pullTicker(atMarks bool) func(ctx context.Context, server *scene.WSServer, r *tickReader) {
	return func(ctx context.Context, server *scene.WSServer, r *tickReader) {
		feed := server.Open(r.t, &reconnect.Options{OnSession: subscribeTicker, MarkRefetch: true})
		for m, err := range feed.Messages(ctx) {
			if seam, ok := errors.AsType[*reconnect.Seam](err); ok {
				if r.seam(seam); seam.Refetch == atMarks || r.seams == 0 {
					r.refetch(ctx)
				}
			} else if err != nil {
				require.ErrorIs(r.t, err, context.DeadlineExceeded)
				return
			} else {
				r.message(m)
			}
		}
	}
}

// check asserts that nothing is missing.
func (r *tickReader) check(t *testing.T) {
	require.Zero(t, r.missing, "of %d", hourOfEvents)
	require.True(t, r.complete)
	require.Equal(t, hourOfEvents, r.last)
	require.Greater(t, r.seams, 100)
	require.Equal(t, r.seams+1, r.marks)
}

// An hour of a connection that is lost each 30 s: nothing is missing if a snapshot is fetched at each
// mark.
func TestARefetchAtTheMarkMissesNothing(t *testing.T) {
	withTicker(t, pullTicker(true)).check(t)
}

// The measure: if it is fetched at each seam, what is sent until the next session is subscribed is missing.
func TestARefetchAtTheSeamMissesWhatIsSentBeforeTheSubscription(t *testing.T) {
	r := withTicker(t, pullTicker(false))
	t.Logf("missing: %d of %d, at %d seams", r.missing, hourOfEvents, r.seams)
	require.Greater(t, r.missing, 500)
}

// The same by OnMessage and OnSeam.
func TestARefetchAtTheMarkMissesNothingByPush(t *testing.T) {
	withTicker(t, func(ctx context.Context, server *scene.WSServer, r *tickReader) {
		server.Open(r.t, &reconnect.Options{
			OnSession: subscribeTicker, MarkRefetch: true,
			OnMessage: func(_ context.Context, m reconnect.Message) { r.message(m) },
			OnSeam: func(ctx context.Context, s *reconnect.Seam) {
				if r.seam(s); s.Refetch {
					r.refetch(ctx)
				}
			},
		})
		<-ctx.Done()
	}).check(t)
}
