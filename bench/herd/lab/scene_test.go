package lab_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/redial-go/redial/bench/herd/fleet"
	"github.com/redial-go/redial/bench/herd/lab"
	"github.com/redial-go/redial/reconnect/backoff"
)

// quick is a client that finds a hang, and a server that is back, within a second. Its
// sessions are stable after a moment.
func quick() fleet.Client {
	waits := &backoff.Exponential{Base: 100 * time.Millisecond, Cap: 400 * time.Millisecond}
	connect := backoff.Timeout{Base: time.Second, Factor: 1, Cap: time.Second}
	handshake := backoff.Timeout{Base: time.Second / 2, Factor: 1, Cap: time.Second / 2}
	policy := backoff.WithTimeouts(waits, connect, handshake)
	return fleet.Client{Name: "quick", Policy: policy, Whole: true, OneConnection: true, StableAfter: 100 * time.Millisecond, Credit: -1}
}

func play(t *testing.T, h lab.Herd) *lab.Result {
	t.Helper()
	h.N, h.Client, h.Capacity, h.Watch = 40, quick(), 400, 30*time.Second
	r, err := lab.Run(t.Context(), h)
	require.NoError(t, err)
	require.True(t, r.Recovered())
	require.Equal(t, h.Scene, r.Scene)
	require.Equal(t, h.N, r.Up)
	require.Len(t, r.Away, h.N)
	require.NotContains(t, r.Away, fleet.Never)
	require.Zero(t, r.Local)
	return r
}

func TestAHangAcceptsAndAnswersNobodyUntilItIsOver(t *testing.T) {
	t.Parallel()
	r := play(t, lab.Herd{Scene: lab.Hang, Outage: 4 * time.Second})
	require.GreaterOrEqual(t, r.Outage, 4*time.Second)
	require.Greater(t, r.Away[0], time.Second, "what was accepted before is never answered; a client may notice its loss late on a loaded machine")
	require.Positive(t, r.TimedOut, "it was accepted, and the client gave up")
	require.InDelta(t, r.Dials, 1+r.Refused+r.TimedOut, 1e-6)
	require.Less(t, r.UpShare, 0.5, "the connections are lost when the server is killed, which may take a moment")
}

func TestAServerThatFlapsLosesItsConnectionsEachTime(t *testing.T) {
	t.Parallel()
	r := play(t, lab.Herd{Scene: lab.Flap, Flaps: 3, Outage: 2 * time.Second})
	require.GreaterOrEqual(t, r.Outage, 5*2*time.Second, "away, up, away, up, away")
	require.Positive(t, r.UpShare)
	require.Less(t, r.UpShare, 0.5, "it is away for three fifths")
	require.Greater(t, r.Away[0], 2*2*time.Second, "three times, of which each may begin late on a loaded machine")
	highest := 0
	for _, b := range r.Bins[20:40] {
		highest = max(highest, b.Up)
	}
	require.Positive(t, highest, "it serves in between")
	require.Positive(t, r.T100, "what was reached before the last loss does not count")
}

func TestARollingRestartLosesTheClientsOfOneServerAtATime(t *testing.T) {
	t.Parallel()
	for _, known := range []bool{false, true} {
		r := play(t, lab.Herd{
			Scene: lab.Rolling, Servers: 3, Every: 3 * time.Second, Outage: 300 * time.Millisecond, Known: known,
		})
		require.GreaterOrEqual(t, r.Outage, 6300*time.Millisecond)
		require.Greater(t, r.UpShare, 0.5)
		require.Less(t, r.UpShare, 1.0)
		require.Zero(t, r.Ideal, "not all are away at once")
		for _, b := range r.Bins {
			require.Positive(t, b.Up, "those of the other servers are up")
		}
	}
}

func TestClientsFindTheHalfThatDoesNotHang(t *testing.T) {
	t.Parallel()
	r := play(t, lab.Herd{Scene: lab.Half, Servers: 2})
	require.Positive(t, r.TimedOut, "some met the half that hangs")
	require.Equal(t, 100*time.Millisecond, r.Ideal, "of the other half")
}

func TestAScenePlaysTheSameInTheSimulator(t *testing.T) {
	const second = time.Second
	base := lab.Herd{N: 100, Client: client(t, "redial"), Capacity: 50, Outage: 3 * second, Servers: 4, Every: 10 * second}
	for scene, want := range map[lab.Scene]time.Duration{lab.Restart: 3, lab.Hang: 3, lab.Flap: 27, lab.Rolling: 33, lab.Half: 0} {
		h := base
		h.Scene = scene
		s := h.Simulated()
		require.Equal(t, want*second, s.Return(), scene.String())
		r, err := lab.Simulate(t.Context(), h, 1)
		require.NoError(t, err)
		require.Equal(t, want*second, r.Outage)
		require.True(t, r.Recovered(), scene.String())
	}
	base.Client = client(t, "full")
	require.Zero(t, base.Simulated().Client.Credit, "a real Conn gives credit for a short session under any policy")
}

func TestASceneThatCannotBePlayedIsAnError(t *testing.T) {
	good := lab.Herd{N: 1, Capacity: 1, Outage: time.Second}
	for want, change := range map[string]func(h *lab.Herd){
		"there is no scene 9":                     func(h *lab.Herd) { h.Scene = 9 },
		"a server of yours has no scene":          func(h *lab.Herd) { h.URL, h.Scene = "ws://localhost/", lab.Hang },
		"a server can flap up to 50 times, not":   func(h *lab.Herd) { h.Flaps = 51 },
		"there can be 2 to 20 servers, not 1":     func(h *lab.Herd) { h.Scene, h.Servers = lab.Half, 1 },
		"there can be 2 to 20 servers, not 21":    func(h *lab.Herd) { h.Servers = 21 },
		"away for 1s cannot be restarted 1ms apa": func(h *lab.Herd) { h.Every = time.Millisecond },
	} {
		h := good
		change(&h)
		require.ErrorContains(t, h.Validate(), want)
	}
	require.NoError(t, good.Validate())
}
