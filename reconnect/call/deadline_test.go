package call_test

import (
	"context"
	"encoding/json"
	"errors"
	"net/http"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/coder/websocket"
	"github.com/coder/websocket/wsjson"
	"github.com/stretchr/testify/require"

	"github.com/redial-go/redial/conn"
	"github.com/redial-go/redial/conn/conntest"
	"github.com/redial-go/redial/dialer"
	"github.com/redial-go/redial/reconnect"
	"github.com/redial-go/redial/reconnect/call"
)

// timed is a question that says for how long its asker still waits, or the answer with the same id.
type timed struct {
	ID   uint64        `json:"id"`
	Left time.Duration `json:"left,omitempty"` // ns; 0: the asker does not say
}

// timedQuestion encodes a question with the time that is left until ctx ends. The time is a duration and no time of
// day, so that the clocks of two machines need not agree. It does not include the time on the way.
func timedQuestion(ctx context.Context, id uint64) (conn.Message, error) {
	q := timed{ID: id}
	if end, ok := ctx.Deadline(); ok {
		q.Left = max(time.Until(end), 1)
	}
	text, err := json.Marshal(q)
	return conn.TextMessage(string(text)), err
}

// slow is a server that takes so long for each question, one after the other. It drops a question that it
// could not answer in time.
type slow struct {
	takes           time.Duration
	worked, dropped int
	longest         int // questions that waited at once
}

// taken is a question with the time by which its answer must be sent; zero: any.
type taken struct {
	timed
	by time.Time
}

func (s *slow) serve(ctx context.Context, c *websocket.Conn, _ *http.Request) {
	waiting := make(chan taken, 1000) // more than the test asks
	var worker sync.WaitGroup
	worker.Go(func() { s.work(ctx, c, waiting) })
	defer worker.Wait()
	defer close(waiting)
	for {
		var q timed
		if err := wsjson.Read(ctx, c, &q); err != nil {
			return
		}
		one := taken{timed: q}
		if q.Left > 0 {
			one.by = time.Now().Add(q.Left)
		}
		waiting <- one
	}
}

func (s *slow) work(ctx context.Context, c *websocket.Conn, waiting <-chan taken) {
	time.Sleep(time.Millisecond) // so that no question comes at the moment at which the worker takes one
	for q := range waiting {
		s.longest = max(s.longest, len(waiting))
		if !q.by.IsZero() && time.Until(q.by) < s.takes {
			s.dropped++
			continue
		}
		time.Sleep(s.takes) // the work
		s.worked++
		_ = wsjson.Write(ctx, c, timed{ID: q.ID}) // the client may be gone
	}
}

// Twice as many questions come as the server can answer: 400 in two seconds, each of 10 ms of work, and the client
// waits 98 ms for each. A server that does not know this limit works for two seconds more, and only its first 18
// answers come in time. A server that knows the limit answers as many questions as it has time for, all in time.
func TestAServerThatKnowsTheTimeLeftDropsWhatNobodyWaitsFor(t *testing.T) {
	const (
		asked, every    = 400, 5 * time.Millisecond
		patience, takes = 98 * time.Millisecond, 10 * time.Millisecond
	)
	for _, w := range []struct {
		told                               bool
		answered, worked, dropped, longest int
	}{
		{told: false, answered: 18, worked: 400, dropped: 0, longest: 199},
		{told: true, answered: 209, worked: 209, dropped: 191, longest: 18},
	} {
		synctest.Test(t, func(t *testing.T) {
			server := &slow{takes: takes}
			n := new(conntest.Network)
			s := conntest.NewServer(n, "slow.test:80", server.serve)
			questions, c := openTimed(t, n)
			var all sync.WaitGroup
			for range asked {
				all.Go(func() {
					ctx, cancel := context.WithTimeout(t.Context(), patience)
					defer cancel()
					said := ctx
					if !w.told {
						said = t.Context()
					}
					id := questions.Next()
					message, err := timedQuestion(said, id)
					if err == nil {
						_, err = questions.Do(ctx, call.Request[uint64]{ID: id, Message: message})
					}
					if err != nil && !errors.Is(err, context.DeadlineExceeded) {
						t.Error(err)
					}
				})
				time.Sleep(every)
			}
			all.Wait()
			time.Sleep(time.Minute) // until the server has nothing more to do
			stats := questions.Stats()
			c.Close()
			<-c.Done()
			s.Close()
			require.Equal(t, w.answered, int(stats.Answered), "in time")
			require.Equal(t, w.worked-w.answered, int(stats.Late), "worked for in vain")
			require.Equal(t, []int{w.worked, w.dropped, w.longest}, []int{server.worked, server.dropped, server.longest})
		})
	}
}

// openTimed returns a Client of questions to the slow server, and its Conn with a ready session.
func openTimed(t *testing.T, n *conntest.Network) (*call.Client[uint64], *reconnect.Conn) {
	questions, err := call.New(&call.Options[uint64]{ID: func(m reconnect.Message) (uint64, bool) {
		var answer timed
		err := json.Unmarshal(m.Data, &answer)
		return answer.ID, err == nil
	}})
	require.NoError(t, err)
	c, err := reconnect.New(
		&dialer.WebSocket{URL: "ws://slow.test/", DialContext: n.DialContext},
		&reconnect.Options{Layers: []*reconnect.Layer{questions.Layer()}, Inbox: reconnect.Inbox{Overflow: reconnect.InboxDiscard}})
	require.NoError(t, err)
	require.NoError(t, c.Await(t.Context(), reconnect.StateReady))
	return questions, c
}
