package dialer

import (
	"context"
	"errors"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/redial-go/redial/conn/conntest"
	"github.com/redial-go/redial/reconnect/backoff"
)

// announcing returns a context whose attempt calls f with each host that is announced.
func announcing(t *testing.T, f func(host string) error) context.Context {
	return backoff.WithAttempt(t.Context(), backoff.Attempt{Host: f})
}

// A supervisor with a gate is notified of the host of a dial before anything is connected.
func TestHostOfDialIsAnnounced(t *testing.T) {
	for name, test := range map[string]struct{ prepared, want string }{
		"usual":    {"", ""},
		"path":     {"ws://server.example/other?token=secret", ""},
		"host":     {"ws://other.example:81/?token=secret", "other.example:81"},
		"default":  {"wss://Other.example/", "other.example:443"},
		"endpoint": {"ws://SERVER.example:80/other", ""},
	} {
		withServer(t, func(t *testing.T, v *wsServer) {
			v.dialer.Prepare = func(_ context.Context, r *Request) error {
				if test.prepared != "" {
					r.URL = test.prepared
				}
				return nil
			}
			var hosts []string
			ctx := announcing(t, func(host string) error {
				hosts = append(hosts, host)
				require.Zero(t, v.network.Count("").Open)
				return nil
			})
			if c, err := v.dialer.Dial(ctx); err == nil {
				c.CloseNow()
			}
			require.Equal(t, []string{test.want}, hosts, name)
		})
	}
}

// Several endpoints are one host at a gate.
func TestNoEndpointIsAnotherHost(t *testing.T) {
	withServer(t, func(t *testing.T, v *wsServer) {
		v.dialer.URL, v.dialer.URLs = "", []string{"ws://b.example/", "ws://a.example/"}
		var hosts []string
		ctx := announcing(t, func(host string) error {
			hosts = append(hosts, host)
			return nil
		})
		_, err := v.dialer.Dial(ctx)
		require.Error(t, err)
		require.Equal(t, []string{"", ""}, hosts)
	})
}

// If the supervisor has to wait for the host, nothing is connected, no other endpoint is tried, and the
// endpoint's last answer stays: Prepare is notified again that the credentials were refused.
func TestDialThatHasToWaitAsksNothing(t *testing.T) {
	errHeld := errors.New("held")
	withServer(t, func(t *testing.T, v *wsServer) {
		refreshes := v.recordRefreshes()
		v.Next(conntest.Status(401, nil), v.Accept)
		require.Equal(t, 401, v.fail(t, t.Context(), 0).StatusCode)
		ctx := announcing(t, func(string) error { return errHeld })
		dials := len(v.network.Dials(serverAddr))
		e := v.fail(t, ctx, 0)
		require.ErrorIs(t, e, errHeld)
		require.Len(t, v.network.Dials(serverAddr), dials)
		v.dial(t).CloseNow()
		require.Equal(t, []bool{false, true, true}, *refreshes)
	})

	d := &WebSocket{URLs: []string{"ws://127.0.0.1:1", "ws://127.0.0.1:2"}}
	announced := 0
	_, err := d.Dial(announcing(t, func(string) error {
		announced++
		return errHeld
	}))
	require.ErrorIs(t, err, errHeld)
	require.Equal(t, 1, announced)
}

// The error of a dial that has to wait for its host leaves out a secret that Prepare has added.
func TestErrorOfAnnouncedHostHasNoSecret(t *testing.T) {
	withServer(t, func(t *testing.T, v *wsServer) {
		v.dialer.Prepare = func(_ context.Context, r *Request) error {
			r.URL = "ws://moved-here.example/?token=moved-here"
			return nil
		}
		_, err := v.dialer.Dial(announcing(t, func(host string) error {
			return errors.New("waits for " + host)
		}))
		require.ErrorContains(t, err, "waits for ....example")
	})
}

// The supervisor waits for one host at the gate, and then that host is dialed, whichever endpoint it stands for.
func TestRoundContinuesWithTheHostThatWasAnnounced(t *testing.T) {
	for range 50 {
		d := &WebSocket{URLs: []string{"ws://a.test/", "ws://b.test/", "ws://c.test/"}}
		d.Prepare = func(_ context.Context, r *Request) error {
			r.URL = strings.Replace(r.URL, ".test", ".moved", 1)
			return nil
		}
		var hosts []string
		held := errors.New("held")
		ctx := backoff.WithAttempt(t.Context(), backoff.Attempt{Host: func(host string) error {
			hosts = append(hosts, host)
			return held
		}})
		for range 2 {
			_, err := d.Dial(ctx)
			require.ErrorIs(t, err, held)
		}
		require.Len(t, hosts, 2)
		require.Equal(t, hosts[0], hosts[1])
	}
}
