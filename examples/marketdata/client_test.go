//go:build !js

package main

import (
	"context"
	"encoding/json"
	"net/http"
	"testing"
	"testing/synctest"
	"time"

	"github.com/coder/websocket"
	"github.com/stretchr/testify/require"

	"github.com/redial-go/redial/conn/conntest"
	"github.com/redial-go/redial/dialer"
	"github.com/redial-go/redial/reconnect"
)

// quiet is a venue whose books never change. It answers the first pings of a connection, and
// notes when it was asked for anything else, up to 1000 times.
func quiet(pings int, asked chan time.Time) func(context.Context, *websocket.Conn, *http.Request) {
	return func(ctx context.Context, ws *websocket.Conn, _ *http.Request) {
		for left := pings; ; {
			var r message
			_, data, err := ws.Read(ctx)
			if err != nil || json.Unmarshal(data, &r) != nil {
				return
			}
			if r.Op != "ping" {
				asked <- time.Now()
			}
			answers := []message{{Type: "pong"}}
			switch {
			case r.Op == "subscribe":
				answers = []message{{Type: "snapshot", Book: r.Books[0], Seq: 40}, {ID: r.ID}}
			case r.Op == "unsubscribe":
				answers = []message{{ID: r.ID}}
			case left == 0:
				continue
			default:
				left--
			}
			for _, a := range answers {
				if ws.Write(ctx, websocket.MessageText, a.encode().Data) != nil {
					return
				}
			}
		}
	}
}

// follows has a client with the defaults follow a quiet venue, in virtual time.
func follows(t *testing.T, pings int, f func(t *testing.T, c *client, ends <-chan reconnect.SessionEnd, asked <-chan time.Time)) {
	synctest.Test(t, func(t *testing.T) {
		n := new(conntest.Network)
		asked := make(chan time.Time, 1000)
		s := conntest.NewServer(n, "venue.test:80", quiet(pings, asked))
		defer s.Close()
		ends := make(chan reconnect.SessionEnd, 8) // more than there are
		c, err := follow(&dialer.WebSocket{URL: "ws://venue.test/feed", DialContext: n.DialContext}, &reconnect.Options{
			Run: reconnect.RunOptions{Trace: &reconnect.Trace{SessionDone: func(e reconnect.SessionEnd) { ends <- e }}},
		}, secret, nil)
		require.NoError(t, err)
		read := make(chan error, 1)
		go func() { read <- c.read(t.Context(), func(*event) {}) }() // <-read waits for it
		defer func() {
			c.feed.Close()
			<-read
			<-c.feed.Done()
		}()
		c.want("GO-USD")
		require.NoError(t, c.set.Synced(t.Context()))
		f(t, c, ends, asked)
	})
}

func TestAHeartbeatKeepsAQuietConnection(t *testing.T) {
	follows(t, 1000, func(t *testing.T, c *client, ends <-chan reconnect.SessionEnd, _ <-chan time.Time) {
		before := c.feed.Stats().Received
		time.Sleep(time.Hour)
		synctest.Wait()
		require.Empty(t, ends)
		require.EqualValues(t, 360, c.feed.Stats().Received-before, "a pong each 10 s")
		require.True(t, c.view("GO-USD").valid)
	})
}

func TestAVenueThatDoesNotAnswerTheHeartbeatIsCut(t *testing.T) {
	follows(t, 2, func(t *testing.T, _ *client, ends <-chan reconnect.SessionEnd, _ <-chan time.Time) {
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
	follows(t, 10000, func(t *testing.T, c *client, ends <-chan reconnect.SessionEnd, _ <-chan time.Time) {
		time.Sleep(21*time.Hour + 30*time.Minute)
		synctest.Wait()
		require.Empty(t, ends)
		time.Sleep(2*time.Hour + 30*time.Minute)
		synctest.Wait()
		require.Len(t, ends, 1)
		require.ErrorIs(t, (<-ends).Cause, reconnect.ErrRotated)
		require.True(t, c.view("GO-USD").valid)
		require.EqualValues(t, 2, c.feed.Status().Session)
	})
}

func TestTheClientSendsNoMoreThanTheVenueAllows(t *testing.T) {
	follows(t, 1000, func(t *testing.T, c *client, _ <-chan reconnect.SessionEnd, asked <-chan time.Time) {
		for range 20 { // each is two requests
			for _, symbol := range []string{"C-USD", "GO-USD"} {
				c.want(symbol)
				require.NoError(t, c.set.Synced(t.Context()))
			}
		}
		synctest.Wait()
		var times []time.Time
		for len(asked) > 0 {
			times = append(times, <-asked)
		}
		require.Len(t, times, 81)
		require.Equal(t, 5, conntest.Peak(times, 1200*time.Millisecond), "what the venue allows in a second")
		require.Equal(t, []string{"GO-USD"}, c.symbols())
	})
}
