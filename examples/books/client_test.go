//go:build !js

package books

import (
	"context"
	"maps"
	"net/http"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/coder/websocket"
	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"github.com/redial-go/redial/conn"
	"github.com/redial-go/redial/conn/conntest"
	"github.com/redial-go/redial/dialer"
	"github.com/redial-go/redial/examples/venue"
	"github.com/redial-go/redial/reconnect"
	"github.com/redial-go/redial/reconnect/budget"
	"github.com/redial-go/redial/reconnect/subscription"
)

// quiet is a venue whose books never change. It answers the first pings of a connection, and
// notes when it was asked for anything else, up to 1000 times.
func quiet(pings int, asked chan time.Time) func(context.Context, *websocket.Conn, *http.Request) {
	return func(ctx context.Context, ws *websocket.Conn, _ *http.Request) {
		for left := pings; ; {
			_, data, err := ws.Read(ctx)
			if err != nil {
				return
			}
			r, err := venue.Decode(data)
			if err != nil {
				return
			}
			if r.Op != "ping" {
				asked <- time.Now()
			}
			answers := []venue.Message{{Type: "pong"}}
			switch {
			case r.Op == "subscribe":
				answers = []venue.Message{{Type: "snapshot", Book: r.Books[0], Seq: 40}, {ID: r.ID}}
			case r.Op == "unsubscribe":
				answers = []venue.Message{{ID: r.ID}}
			case left == 0:
				continue
			default:
				left--
			}
			for _, a := range answers {
				if ws.Write(ctx, websocket.MessageText, a.Encode().Data) != nil {
					return
				}
			}
		}
	}
}

// follows has a client with the defaults follow a quiet venue, in virtual time.
func follows(t *testing.T, pings int, f func(t *testing.T, c *Client, ends <-chan reconnect.SessionDone, asked <-chan time.Time)) {
	synctest.Test(t, func(t *testing.T) {
		n := new(conntest.Network)
		asked := make(chan time.Time, 1000)
		s := conntest.NewServer(n, "venue.test:80", quiet(pings, asked))
		defer s.Close()
		ends := make(chan reconnect.SessionDone, 8) // more than there are
		c, err := Follow(&dialer.WebSocket{URL: "ws://venue.test/feed", DialContext: n.DialContext}, &reconnect.Options{
			Rotate: reconnect.Rotation{After: 24 * time.Hour},
			Pace:   budget.Window{N: 5, Per: 1200 * time.Millisecond},
			Run:    reconnect.RunOptions{Trace: &reconnect.Trace{SessionDone: func(e reconnect.SessionDone) { ends <- e }}},
		})
		require.NoError(t, err)
		read := make(chan error, 1)
		go func() { read <- c.Read(t.Context(), func(*Event) {}) }() // <-read waits for it
		defer func() {
			c.Feed.Close()
			<-read
			<-c.Feed.Done()
		}()
		c.Want("GO-USD")
		require.NoError(t, c.Set.Synced(t.Context()))
		f(t, c, ends, asked)
	})
}

func TestAHeartbeatKeepsAQuietConnection(t *testing.T) {
	follows(t, 1000, func(t *testing.T, c *Client, ends <-chan reconnect.SessionDone, _ <-chan time.Time) {
		before := c.Feed.Stats().Received
		time.Sleep(time.Hour)
		synctest.Wait()
		require.Empty(t, ends)
		require.EqualValues(t, 360, c.Feed.Stats().Received-before, "a pong each 10 s")
		require.True(t, c.valid("GO-USD"))
	})
}

func TestAVenueThatDoesNotAnswerTheHeartbeatIsCut(t *testing.T) {
	follows(t, 2, func(t *testing.T, _ *Client, ends <-chan reconnect.SessionDone, _ <-chan time.Time) {
		time.Sleep(50*time.Second - time.Nanosecond)
		synctest.Wait()
		require.Empty(t, ends)
		time.Sleep(time.Nanosecond) // 30 s after the second pong
		synctest.Wait()
		require.Len(t, ends, 1)
		require.ErrorIs(t, (<-ends).Cause, reconnect.ErrSilent)
	})
}

func TestASessionIsReplacedBeforeADayIsOver(t *testing.T) {
	follows(t, 10000, func(t *testing.T, c *Client, ends <-chan reconnect.SessionDone, _ <-chan time.Time) {
		time.Sleep(21*time.Hour + 30*time.Minute)
		synctest.Wait()
		require.Empty(t, ends)
		time.Sleep(2*time.Hour + 30*time.Minute)
		synctest.Wait()
		require.Len(t, ends, 1)
		require.ErrorIs(t, (<-ends).Cause, reconnect.ErrRotated)
		require.True(t, c.valid("GO-USD"))
		require.EqualValues(t, 2, c.Feed.Status().Session)
	})
}

func TestTheClientSendsNoMoreThanTheVenueAllows(t *testing.T) {
	follows(t, 1000, func(t *testing.T, c *Client, _ <-chan reconnect.SessionDone, asked <-chan time.Time) {
		for range 20 { // each is two requests
			for _, symbol := range []string{"C-USD", "GO-USD"} {
				c.Want(symbol)
				require.NoError(t, c.Set.Synced(t.Context()))
			}
		}
		synctest.Wait()
		var times []time.Time
		for len(asked) > 0 {
			times = append(times, <-asked)
		}
		require.Len(t, times, 81)
		require.Equal(t, 5, conntest.Peak(times, 1200*time.Millisecond), "what the venue allows in a second")
		require.Equal(t, []string{"GO-USD"}, slices.Collect(maps.Keys(c.books)))
	})
}

// valid reports whether the client has a valid book of a symbol.
func (c *Client) valid(symbol string) bool {
	b := c.View(symbol)
	return b.Valid()
}

func received(text string) reconnect.Message {
	return reconnect.Message{Message: conn.TextMessage(text)}
}

func TestOnlyAMessageWithAnIDIsAnAnswer(t *testing.T) {
	for text, want := range map[string]bool{
		`{"type":"update","book":"GO-USD","seq":7}`: false,
		`{"type":"pong"}`:          false,
		`{"id":""}`:                false,
		`{"id":"7"`:                false,
		`{"type":"done","id":"7"}`: true,
	} {
		a, ok := answer(received(text))
		require.Equal(t, want, ok, text)
		require.NoError(t, a.Err)
	}
	a, ok := answer(received(`{"id":"7","error":"unknown book"}`))
	require.True(t, ok)
	require.Equal(t, "7", a.ID)
	require.EqualError(t, a.Err, "unknown book")
}

func TestARequestNamesItsKeys(t *testing.T) {
	m, err := encode(&subscription.Request[string]{Op: subscription.OpUnsubscribe, ID: "7", Keys: []string{"a", "b"}})
	require.NoError(t, err)
	require.JSONEq(t, `{"id":"7","op":"unsubscribe","books":["a","b"]}`, string(m.Data))
}

func FuzzMessagesOfAVenue(f *testing.F) {
	f.Add(`{"type":"snapshot","book":"GO-USD","seq":7,"bids":{"9990":5}}`)
	f.Add(`{"id":"7","error":"unknown book"}`)
	f.Add(`nonsense`)
	c := reader(f)
	f.Fuzz(func(t *testing.T, text string) {
		if it, ok := c.parse(received(text)); ok && it.Key == "" {
			t.Error("an item without a key")
		}
		if a, ok := answer(received(text)); ok && a.ID == "" {
			t.Error("an answer without an id")
		}
	})
}

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }
