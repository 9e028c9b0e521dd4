package drain_test

import (
	"errors"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	drainsim "github.com/redial-go/redial/bench/herd/drain"
	"github.com/redial-go/redial/bench/herd/fleet"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

const second = time.Second

func way(t *testing.T, name string) drainsim.Way {
	t.Helper()
	for _, w := range drainsim.Ways() {
		if w.Name == name {
			return w
		}
	}
	require.Fail(t, "there is no way "+name)
	return drainsim.Way{}
}

func run(t *testing.T, o drainsim.Options, name string) *drainsim.Result {
	t.Helper()
	r, err := drainsim.Run(t.Context(), o, way(t, name))
	require.NoError(t, err)
	return r
}

// The arithmetic: 10,000 over 60 s are 17 dials per 100 ms. A Poisson process of that rate has
// about 30 in the worst of 600.
func TestAnEvenDrawHasAboutThirtyDialsInTheBusiest100ms(t *testing.T) {
	for seed := range uint64(5) {
		for _, name := range []string{"draws", "drain", "notice all"} {
			r := run(t, drainsim.Options{Seed: seed}, name)
			require.InDelta(t, 31, r.Peak, 6, name)
			require.EqualValues(t, 1, r.PerClient, name)
		}
	}
}

// The library's clients dial within 2 s: 10,000 are 500 per 100 ms, and the others need 20 s for
// them.
func TestACutHasAllDialsInTwoSeconds(t *testing.T) {
	for _, name := range []string{"cut", "phoenix"} {
		r := run(t, drainsim.Options{}, name)
		require.InDelta(t, 545, r.Peak, 25, name)
		require.Equal(t, 10_000, r.Cut)
		require.Greater(t, r.Back, 20*second)
		require.Greater(t, r.Away, 17*second)
		require.Greater(t, r.MostAway, 9_000)
	}
}

func TestAClosedClientIsAwayForItsFirstWaitAtMost(t *testing.T) {
	r := run(t, drainsim.Options{}, "drain")
	require.Equal(t, 10_000, r.Cut)
	require.Less(t, r.Away, 2500*time.Millisecond, "2 s, two round trips, and a queue of some handshakes")
	require.InDelta(t, 1.1, r.Mean.Seconds(), 0.1)
	require.Less(t, r.MostAway, 260, "167 are closed per second, and away for 1.1 s")
	require.Greater(t, r.Closed, 59*second)
	require.Less(t, r.Back, 63*second)
}

func TestNobodyIsCutAfterANotice(t *testing.T) {
	for _, name := range []string{"notice", "notice all"} {
		r := run(t, drainsim.Options{}, name)
		require.Zero(t, r.Cut)
		require.Zero(t, r.Away)
		require.Zero(t, r.MostAway)
		require.Less(t, r.Back, 60*second)
	}
}

// The draw of the server and that of the client add up to a trapezoid. Its top is 10,000 in
// three quarters of the window, or 22 per 100 ms.
func TestANoticeAtADrawOfItsOwnIsLessEvenThanOneForAll(t *testing.T) {
	require.InDelta(t, 38, run(t, drainsim.Options{}, "notice").Peak, 6)
}

// With clients that dial at once the server's batches are the herds that they were.
func TestOnlyADrawHelpsClientsThatDoNotWait(t *testing.T) {
	recws, err := fleet.Find("recws")
	require.NoError(t, err)
	o := drainsim.Options{Client: recws}
	require.Equal(t, 10_000, run(t, o, "cut").Peak)
	require.Equal(t, 334, run(t, o, "batches").Peak)
	require.InDelta(t, 31, run(t, o, "draws").Peak, 6)
	require.InDelta(t, 18, run(t, o, "drain").Peak, 3, "a slot is 6 ms, so that there is hardly any chance in it")
}

func TestALameDuckTakesFiveEighthsOfItsTime(t *testing.T) {
	require.InDelta(t, 37.5, run(t, drainsim.Options{}, "lame duck").Closed.Seconds(), 0.5)
	require.InDelta(t, 68.75, run(t, drainsim.Options{}, "lame duck 2m").Closed.Seconds(), 0.5)
	few := run(t, drainsim.Options{Clients: 11}, "lame duck")
	require.LessOrEqual(t, few.Closed, 10*second, "never more than 1 s from one to the next")
	require.GreaterOrEqual(t, few.Closed, 5*second)
}

func TestAWaitThatIsToldSpreadsTheDialsAndNotTheTimeAway(t *testing.T) {
	r := run(t, drainsim.Options{}, "told")
	require.Less(t, r.Peak, 45)
	require.Greater(t, r.Away, 58*second)
	require.Equal(t, 10_000, r.MostAway)
}

// 10,000 clients need 20 s of servers that complete 500 handshakes/s.
func TestAWindowThatIsTooShortMakesAQueue(t *testing.T) {
	require.Less(t, run(t, drainsim.Options{Window: 25 * second}, "drain").Away, 4*second)
	require.Greater(t, run(t, drainsim.Options{Window: 10 * second}, "drain").Away, 8*second)
}

func TestTheSameSeedGivesTheSameDrain(t *testing.T) {
	for _, w := range drainsim.Ways() {
		o := drainsim.Options{Clients: 500}
		require.Equal(t, run(t, o, w.Name), run(t, o, w.Name))
		r := run(t, o, w.Name)
		o.Seed++
		require.NotEqual(t, r, run(t, o, w.Name))
	}
}

func TestWhatIsWrongIsNamed(t *testing.T) {
	for want, o := range map[string]drainsim.Options{
		"simulate a drain: want 1 to 1000000 clients, not -1":                        {Clients: -1},
		"simulate a drain: want a window of 1s to 24h0m0s, not 1ms":                  {Window: time.Millisecond},
		"simulate a drain: want a round trip of at most 10s, not 1m0s":               {RTT: time.Minute},
		"simulate a drain: fleet: a server cannot complete -1 handshakes per second": {Capacity: -1},
	} {
		_, err := drainsim.Run(t.Context(), o, drainsim.Ways()[0])
		require.Equal(t, errors.New(want).Error(), err.Error())
	}
}
