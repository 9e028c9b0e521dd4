package rotate_test

import (
	"context"
	"fmt"
	"math/rand/v2"
	"net/http"
	"net/url"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/redial-go/redial/conn/conntest"
	"github.com/redial-go/redial/dialer"
	"github.com/redial-go/redial/reconnect"
	"github.com/redial-go/redial/reconnect/backoff"
	"github.com/redial-go/redial/reconnect/budget"
	"github.com/redial-go/redial/reconnect/internal/conntests/scene"
)

// Connections whose dials go to another host than the dialer's, and which wait at a gate.

// gated returns a gate, options with it, and the steps at the gate and after it as they happen.
func gated(t *testing.T) (*budget.Gate, reconnect.Options, *scene.Notes) {
	g, err := budget.NewGate(&budget.GateOptions{Probe: scene.Every(10 * time.Second)})
	require.NoError(t, err)
	steps := new(scene.Notes)
	o := scene.WithPolicy(scene.Every(time.Second))
	o.Run.Gate = g
	o.Run.Trace = &reconnect.Trace{
		GateStart:    func(e reconnect.GateStart) { steps.Add("gate " + e.Host) },
		DialStart:    func(e reconnect.DialStart) { steps.Add(fmt.Sprint("dial ", e.Try)) },
		SessionReady: func(s *reconnect.Session) { steps.Add(fmt.Sprint("ready ", s.Number)) },
	}
	return g, o, steps
}

// Prepare may send one connection to a host that is away: the gate counts that host as down, and
// not the dialer's, for which other connections wait.
func TestGateCountsByHostOfPrepare(t *testing.T) {
	scene.WithWSServer(t, nil, func(t *testing.T, server *scene.WSServer) {
		g, o, steps := gated(t)
		var prepared atomic.Int32
		var back atomic.Bool
		server.Dialer.Prepare = func(_ context.Context, r *dialer.Request) error {
			prepared.Add(1)
			if !back.Load() {
				r.URL = "ws://moved.test/v1"
			}
			return nil
		}
		c := server.Open(t, &o)
		time.Sleep(time.Millisecond)
		require.False(t, g.Status(scene.WSAddr).Down)
		require.True(t, g.Status("moved.test:80").Down)
		require.Zero(t, g.Status(scene.WSAddr).Dialing)
		require.Equal(t, []string{"gate " + scene.WSAddr, "dial 1", "gate moved.test:80", "dial 1"}, steps.All())
		require.EqualValues(t, 2, prepared.Load()) // the second time with fresh credentials, after the wait at the gate

		time.Sleep(2 * time.Second)
		require.True(t, c.Status().AtGate)
		require.NotNil(t, c.Status().Outlook) // of the host for which it waits
		moved := conntest.NewServer(server.Network, "moved.test:80", nil)
		defer moved.Close()
		require.NoError(t, c.AwaitReady(t.Context()))
		synctest.Wait() // for the gate
		require.False(t, g.Status("moved.test:80").Down)
		all := steps.All()
		require.Equal(t, []string{"gate moved.test:80", "dial 2"}, all[4:6]) // no wait for the dialer's host
		require.Zero(t, g.Status("moved.test:80").Dialing)

		back.Store(true)
		moved.Disconnect(1012, "")
		synctest.Wait()
		require.NoError(t, c.AwaitReady(t.Context()))
		synctest.Wait() // for SessionReady
		all = steps.All()
		require.Equal(t, []string{
			"gate moved.test:80", "dial 3", "gate " + scene.WSAddr, "dial 3", "ready 2",
		}, all[len(all)-5:])
	})
}

// A dial is made even if Prepare names another host each time. The gate counts no host as down that
// it has let nothing dial.
func TestHostThatChangesEachTimeIsDialed(t *testing.T) {
	scene.WithWSServer(t, nil, func(t *testing.T, server *scene.WSServer) {
		g, o, steps := gated(t)
		var prepared atomic.Int32
		server.Dialer.Prepare = func(_ context.Context, r *dialer.Request) error {
			r.URL = fmt.Sprintf("ws://host%d.test/v1", prepared.Add(1))
			return nil
		}
		server.Open(t, &o)
		time.Sleep(500 * time.Millisecond)
		require.Equal(t, []string{"gate " + scene.WSAddr, "dial 1", "gate host1.test:80", "dial 1"}, steps.All())
		require.EqualValues(t, 2, prepared.Load())
		for _, host := range g.Hosts() {
			require.False(t, g.Status(host).Down, host)
			require.Zero(t, g.Status(host).Dialing, host)
		}
		time.Sleep(time.Second)
		require.Equal(t, []string{"gate " + scene.WSAddr, "dial 2", "gate host3.test:80", "dial 2"}, steps.All()[4:])
	})
}

// A dial at an advised URL, of which there is one, waits at the gate for the host of that URL. Its
// outcome does not count for the usual host.
func TestGateCountsByHostOfAdvisedURL(t *testing.T) {
	scene.WithWSServer(t, nil, func(t *testing.T, server *scene.WSServer) {
		g, o, steps := gated(t)
		var advised scene.Notes
		o.OnSession = func(ctx context.Context, o *reconnect.Opening) error {
			advised.Add(fmt.Sprint(o.Session, " ", o.Advised, " ", reconnect.HintFrom(ctx)))
			return nil
		}
		server.Dialer.FollowHint = func(*url.URL) bool { return true }
		c := server.Ready(t, &o)
		server.Disconnect(1012, "redial/1 url=ws://other.test/v1 hint=h")
		synctest.Wait()
		time.Sleep(1500 * time.Millisecond)
		require.True(t, g.Status("other.test:80").Down)
		require.False(t, g.Status(scene.WSAddr).Down)
		require.NoError(t, c.AwaitReady(t.Context()))
		synctest.Wait() // for SessionReady
		require.Equal(t, []string{
			"gate " + scene.WSAddr, "dial 1", "ready 1",
			"gate " + scene.WSAddr, "dial 2", "gate other.test:80", "dial 2",
			"gate " + scene.WSAddr, "dial 3", "ready 2",
		}, steps.All())

		other := conntest.NewServer(server.Network, "other.test:80", nil)
		defer other.Close()
		time.Sleep(time.Minute)
		server.Disconnect(1012, "redial/1 url=ws://other.test/v1 hint=h")
		synctest.Wait()
		require.NoError(t, c.AwaitReady(t.Context()))
		synctest.Wait()
		require.Len(t, other.Conns(), 1)
		require.False(t, g.Status("other.test:80").Down)
		require.Equal(t, []string{"1 false <nil>", "2 false <nil>", "3 true h"}, advised.All())
		scene.CloseAndWait(c)
	})
}

// A dialer around another may have a name of its own for the gate.
func TestGateNameOfOuterDialer(t *testing.T) {
	scene.WithWSServer(t, nil, func(t *testing.T, server *scene.WSServer) {
		_, o, steps := gated(t)
		c, err := reconnect.New(venue{server.Dialer}, &o)
		require.NoError(t, err)
		require.NoError(t, c.AwaitReady(t.Context()))
		scene.CloseAndWait(c)
		require.Equal(t, []string{"gate venue", "dial 1", "ready 1"}, steps.All())
	})
}

// venue is a dialer whose method Host returns a name of its own.
type venue struct{ *dialer.WebSocket }

func (venue) Host() string { return "venue" }

// If RunOptions.Host is set, all dials wait for that host, wherever they go.
func TestGateHostOfUserStays(t *testing.T) {
	scene.WithWSServer(t, nil, func(t *testing.T, server *scene.WSServer) {
		g, o, steps := gated(t)
		o.Run.Host = "venue"
		server.Dialer.Prepare = func(_ context.Context, r *dialer.Request) error {
			r.URL = "ws://moved.test/v1"
			return nil
		}
		server.Open(t, &o)
		time.Sleep(time.Millisecond)
		require.Equal(t, []string{"gate venue", "dial 1"}, steps.All())
		require.True(t, g.Status("venue").Down)
	})
}

// heldGate is a gate at which the first dial to host waits until it is withdrawn.
type heldGate struct {
	host string
	held atomic.Bool
}

func (g *heldGate) Acquire(ctx context.Context, host string) (func(backoff.Verdict), error) {
	if host == g.host && !g.held.Swap(true) {
		<-ctx.Done()
		return nil, context.Cause(ctx)
	}
	return func(backoff.Verdict) {}, nil
}

// swapping is a policy by which a newer handshake that hangs replaces the kept one.
type swapping struct{}

func (swapping) Next(backoff.History, *rand.Rand) (backoff.Step, bool) {
	return backoff.Step{Wait: time.Second, Connect: 10 * time.Second, Handshake: 5 * time.Second, Swap: true}, true
}

// A dial that is kept beside one after a Kick has to wait at the gate for another host. When the
// server tells the other dial to wait, the first one is withdrawn, and is no longer kept.
func TestKeptDialThatIsWithdrawnIsForgotten(t *testing.T) {
	scene.WithWSServer(t, nil, func(t *testing.T, server *scene.WSServer) {
		var prepared atomic.Int32
		kicked := make(chan struct{})
		server.Dialer.Prepare = func(_ context.Context, r *dialer.Request) error {
			switch prepared.Add(1) {
			case 1:
				<-kicked
				r.URL = "ws://moved.test/v1"
			case 2:
				time.Sleep(time.Second)
			}
			return nil
		}
		var hung atomic.Int32
		o := scene.WithPolicy(swapping{})
		o.Run.Gate = &heldGate{host: "moved.test:80"}
		o.Run.Trace = &reconnect.Trace{DialHung: func(reconnect.DialHung) { hung.Add(1) }}
		hang := func(_ http.ResponseWriter, r *http.Request) { <-r.Context().Done() }
		server.Next(func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Retry-After", "3")
			w.WriteHeader(http.StatusServiceUnavailable)
		}, hang, hang)
		c := server.Open(t, &o)
		synctest.Wait()
		c.Kick()
		synctest.Wait()
		close(kicked)
		time.Sleep(30 * time.Second)
		require.NotZero(t, hung.Load())
		scene.CloseAndWait(c)
	})
}
