package debug

import (
	"context"
	"encoding/json"
	"errors"
	"expvar"
	"net/http"
	"net/url"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/redial-go/redial/conn"
	"github.com/redial-go/redial/conn/conntest"
	"github.com/redial-go/redial/dialer"
	"github.com/redial-go/redial/reconnect"
)

// Whatever holds "planted" is a secret: the user and the query of a URL, headers, messages both
// ways, keys, what a peer says in a close frame, in an HTTP answer, and in an address that it
// advises, and the texts of errors of the program's own.
func TestNoSecretIsShown(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := New(nil)
		network := new(conntest.Network)
		server := conntest.NewServer(network, "host:80", conntest.Echo)
		c, err := reconnect.New(&dialer.WebSocket{
			URL:    "ws://planted:planted@host/feed?token=planted",
			Header: http.Header{"Authorization": {"Bearer planted"}}, DialContext: network.DialContext, Proxy: http.ProxyURL(nil),
		}, &reconnect.Options{Run: reconnect.RunOptions{Policy: every(time.Second)}, WhenDown: reconnect.WhenDownWait, OnMessage: func(context.Context, reconnect.Message) {}})
		require.NoError(t, err)
		p.Register("feed", c, nil)
		s := &scene{t: t, page: p}
		var seen strings.Builder
		look := func() {
			time.Sleep(2 * time.Second)
			for _, target := range []string{"/", "/?conn=1", "/?json", "/?json&conn=1"} {
				seen.WriteString(get(p, target).Body.String())
			}
			seen.WriteString(expvar.Func(p.Vars).String())
		}
		ready := func() {
			ctx, cancel := context.WithTimeout(t.Context(), 10*time.Minute)
			defer cancel()
			require.NoError(t, c.Await(ctx, reconnect.StateReady))
		}
		ready()
		require.NoError(t, c.Write(t.Context(), conn.TextMessage("planted")))
		look()
		server.Disconnect(1012, `redial/1 wait=1s url=wss://planted.example/planted?planted hint=planted`)
		look()
		ready()
		server.Next(func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("X-Planted", "planted")
			w.Header().Set("Location", "https://planted.example/planted")
			w.WriteHeader(http.StatusFound)
			_, _ = w.Write([]byte("planted"))
		}, conntest.Status(401, http.Header{"Www-Authenticate": {"planted"}}), conntest.Garbage([]byte("planted")), server.Accept)
		server.Disconnect(4000, "planted")
		look()
		look()
		time.Sleep(4 * time.Minute)
		look()
		c.Redial(c.Status().Session, errors.New("planted"))
		look()
		ready()
		c.Rotate(c.Status().Session, reconnect.Advice{Cause: errors.New("planted"), URL: "ws://host/planted", Hint: "planted"})
		look()
		c.Close()
		<-c.Done()
		look()
		got := s.one()
		require.Subset(t, kindsOf(got.Events), []string{"dial_failed", "session_done", "rotate_done", "end"}, "the scene has happened")
		require.NotContains(t, strings.ToLower(seen.String()), "planted")
		require.Contains(t, seen.String(), "ws://host/feed")
		require.NoError(t, p.Close())
		server.Close()
	})
}

// Some venues have a secret in the path.
func TestEndpointLeavesASecretInAPathOut(t *testing.T) {
	host := func(endpoint string) string {
		u, err := url.Parse(endpoint)
		require.NoError(t, err)
		return u.Scheme + "://" + u.Host
	}
	inBubble(t, &Options{Endpoint: host}, func(t *testing.T, s *scene) {
		c, err := reconnect.New(&dialer.WebSocket{
			URL: "ws://host/planted", Proxy: http.ProxyURL(nil), DialContext: new(conntest.Network).DialContext,
		}, &reconnect.Options{Run: reconnect.RunOptions{Policy: every(time.Second)}})
		require.NoError(t, err)
		s.page.Register("feed", c, nil)
		time.Sleep(10 * time.Second) // nothing listens: the dials fail
		seen := expvar.Func(s.page.Vars).String()
		for _, target := range []string{"/", "/?conn=1", "/?json", "/?json&conn=1"} {
			seen += get(s.page, target).Body.String()
		}
		require.Equal(t, "ws://host", s.one().Endpoint)
		c.Close()
		<-c.Done()
		require.Contains(t, seen, "dial_failed")
		require.NotContains(t, seen, "planted")
	})
}

func TestPageEscapesNames(t *testing.T) {
	inBubble(t, &Options{Title: "<b>title"}, func(t *testing.T, s *scene) {
		s.page.Register("<b>feed", s.open(reconnect.Options{}), nil)
		s.accept()
		page := get(s.page, "/").Body.String()
		require.Contains(t, page, "&lt;b&gt;title")
		require.Contains(t, page, "&lt;b&gt;feed")
		require.NotContains(t, page, "<b>title")
		require.NotContains(t, page, "<b>feed")
	})
}

// Expvar publishes a Snapshot.
func TestVarsAreASnapshot(t *testing.T) {
	inBubble(t, nil, func(t *testing.T, s *scene) {
		s.page.Register("feed", s.open(reconnect.Options{}), nil)
		s.accept().Deliver(conn.TextMessage("x"))
		synctest.Wait()
		var got Snapshot
		require.NoError(t, json.Unmarshal([]byte(expvar.Func(s.page.Vars).String()), &got))
		require.Equal(t, uint64(1), got.Totals.Received)
		require.Equal(t, countsInfo{All: 1, Ready: 1}, got.Counts)
	})
}
