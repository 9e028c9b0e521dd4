package lab_test

import (
	"bytes"
	"context"
	"encoding/csv"
	"net"
	"net/http"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/coder/websocket"
	"github.com/stretchr/testify/require"

	"github.com/redial-go/redial/bench/herd/fleet"
	"github.com/redial-go/redial/bench/herd/lab"
	"github.com/redial-go/redial/bench/internal/pick"
)

func client(t *testing.T, name string) fleet.Client {
	c, err := fleet.Find(name)
	require.NoError(t, err)
	return c
}

// small is a herd that is back within seconds.
func small(t *testing.T, policy string) lab.Herd {
	return lab.Herd{N: 60, Client: client(t, policy), Capacity: 200, Outage: 300 * time.Millisecond, Watch: 30 * time.Second}
}

func TestAHerdComesBackFromAServerThatWasKilled(t *testing.T) {
	t.Parallel()
	for _, reject := range []bool{false, true} {
		var lost, back, returned atomic.Int32
		var address atomic.Value
		h := small(t, "full")
		h.Reject = reject
		h.Trace = lab.Trace{
			Lost:     func() { lost.Add(1) },
			Back:     func(at string) { back.Add(1); address.Store(at) },
			Returned: func() { returned.Add(1) },
		}
		r, err := lab.Run(t.Context(), h)
		require.NoError(t, err)
		require.True(t, r.Recovered())
		require.False(t, r.Cut)
		require.Equal(t, "full", r.Client)
		require.Equal(t, h.N, r.Up)
		require.EqualValues(t, h.N, returned.Load())
		require.EqualValues(t, 1, lost.Load())
		require.EqualValues(t, 1, back.Load())
		require.Equal(t, 300*time.Millisecond, r.Ideal)
		require.GreaterOrEqual(t, r.Outage, h.Outage)
		require.LessOrEqual(t, r.T50, r.T99)
		require.LessOrEqual(t, r.T99, r.T100)
		consistent(t, r, reject)

		_, err = net.Dial("tcp", address.Load().(string))
		require.Error(t, err, "the server is gone")
	}
}

// consistent checks that all counts agree.
func consistent(t *testing.T, r *lab.Result, reject bool) {
	var dials, admitted, rejected int
	for _, b := range r.Bins {
		dials, admitted, rejected = dials+b.Dials, admitted+b.Admitted, rejected+b.Rejected
		require.LessOrEqual(t, b.Dials, r.Peak)
		require.LessOrEqual(t, b.Admitted+b.Rejected, r.PeakIn)
	}
	require.Zero(t, r.Local)
	require.GreaterOrEqual(t, dials, r.N, "each has dialed")
	require.InDelta(t, r.Dials, float64(dials)/float64(r.N), 1e-9)
	require.InDelta(t, dials, float64(r.N)*(1+r.Refused+r.TimedOut), 1e-6, "each dial has failed or is a session")
	require.InDelta(t, admitted, float64(r.N)*(1+r.Wasted), 1e-6, "each that was admitted is a session or wasted")
	require.LessOrEqual(t, admitted+rejected, dials)
	require.Equal(t, r.N, r.Bins[len(r.Bins)-1].Up)
	if !reject {
		require.Zero(t, rejected)
	}
}

func TestAServerThatRejectsResetsWhatIsTooMuch(t *testing.T) {
	t.Parallel()
	h := small(t, "tailscale") // all within 15 ms, and soon again
	h.Capacity, h.Reject, h.Outage = 30, true, 0
	r, err := lab.Run(t.Context(), h)
	require.NoError(t, err)
	rejected := 0
	for _, b := range r.Bins {
		rejected += b.Rejected
	}
	require.Positive(t, rejected)
	require.GreaterOrEqual(t, r.Refused*float64(r.N)+1e-6, float64(rejected))
	require.True(t, r.Recovered())
}

func TestAHerdThatIsNotBackInTimeIsNotRecovered(t *testing.T) {
	t.Parallel()
	h := small(t, "full")
	h.Capacity, h.Watch = 1, 200*time.Millisecond // a minute is needed
	r, err := lab.Run(t.Context(), h)
	require.NoError(t, err)
	require.False(t, r.Recovered())
	require.False(t, r.Cut)
	require.Equal(t, fleet.Never, r.T100)
	require.Less(t, r.Up, h.N)
	require.GreaterOrEqual(t, r.Watched, h.Watch)
}

func TestTheEndOfTheContextKeepsWhatWasMeasured(t *testing.T) {
	t.Parallel()
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	h := small(t, "full")
	h.Capacity = 1 // a minute is needed
	h.Trace.Back = func(string) { cancel() }
	r, err := lab.Run(ctx, h)
	require.NoError(t, err)
	require.True(t, r.Cut)
	require.False(t, r.Recovered())
	require.GreaterOrEqual(t, r.Outage, h.Outage)
	require.GreaterOrEqual(t, len(r.Bins), int(r.Outage/fleet.Bin)+1, "there is one for the return")
	require.Empty(t, lab.ByClient([]*lab.Result{r}), "it is in no median")

	_, err = lab.Run(ctx, h)
	require.ErrorIs(t, err, context.Canceled, "before the loss there is nothing to keep")
}

// serve is a server of the user's, which drops the first n connections when drop is
// closed: the herd, and one that Run makes to see whether there is a server.
func serve(t *testing.T, n int32, drop <-chan struct{}) (url string) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	var came atomic.Int32
	server := &http.Server{Handler: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		early := came.Add(1) <= n
		c, err := websocket.Accept(w, r, nil)
		if err != nil {
			return
		}
		defer c.CloseNow()
		ctx := c.CloseRead(context.Background())
		if early {
			<-drop
			return
		}
		<-ctx.Done()
	})}
	served := make(chan struct{})
	go func() { defer close(served); _ = server.Serve(l) }()
	t.Cleanup(func() { _ = server.Close(); <-served })
	return "ws://" + l.Addr().String() + "/x?token=secret"
}

func TestAServerOfTheUsersIsVisitedUntilAllWereLostAndAreBack(t *testing.T) {
	t.Parallel()
	drop := make(chan struct{})
	h := lab.Herd{N: 30, URL: serve(t, 31, drop), Client: client(t, "redial"), Watch: 30 * time.Second}
	h.Trace.Connected = func() { close(drop) }
	r, err := lab.Run(t.Context(), h)
	require.NoError(t, err)
	require.True(t, r.Recovered())
	require.Equal(t, 30, r.Up)
	require.Zero(t, r.Ideal)
	require.GreaterOrEqual(t, r.Dials, 1.0)
	require.Zero(t, r.PeakIn)
}

func TestAServerOfTheUsersThatIsNotThereIsAnErrorAtOnce(t *testing.T) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	require.NoError(t, l.Close())
	_, err = lab.Run(t.Context(), lab.Herd{N: 3, URL: "ws://" + l.Addr().String() + "/x?token=secret", Client: client(t, "redial")})
	require.ErrorIs(t, err, syscall.ECONNREFUSED)
	require.NotContains(t, err.Error(), "secret")
}

func TestABadHerdIsAnError(t *testing.T) {
	for _, h := range []lab.Herd{{}, {N: 1}, {N: 1, Capacity: -1}, {N: 1, Capacity: 1e9}, {N: 1, Capacity: 1, Outage: -1}, {N: 1, Capacity: 1, Watch: -1}, {N: 1, Capacity: 1, Backlog: -1}, {N: 1, Capacity: 500, Backlog: time.Minute}, {N: 1, Capacity: 500, Backlog: time.Second, Reject: true}} {
		_, err := lab.Run(t.Context(), h)
		require.Error(t, err)
	}
}

func TestEveryNameIsAClientOfTheSimulator(t *testing.T) {
	names := pick.Names(fleet.Clients(), fleet.NameOf)
	require.Contains(t, names, "redial")
	for _, name := range append(names, "full") {
		c := client(t, name)
		require.Equal(t, name, c.Name)
		require.NotNil(t, c.Policy, name)
	}
	_, err := fleet.Find("nonsense")
	require.ErrorContains(t, err, `there is no policy "nonsense": there are redial, paced, `)
}

func TestMediansAreTakenOverWholeRuns(t *testing.T) {
	s := time.Second
	runs := []*lab.Result{
		{Client: "a", N: 10, Ideal: s, T50: s, T99: 2 * s, T100: 3 * s, Watched: 3 * s, Dials: 1, Peak: 5, Up: 10, UpShare: 0.5, Away: []time.Duration{s, 3 * s}},
		{Client: "b", N: 10, T50: fleet.Never, T99: fleet.Never, T100: fleet.Never, Local: 2},
		{Client: "a", N: 10, Ideal: s, T50: 2 * s, T99: 4 * s, T100: fleet.Never, Watched: 90 * s, Dials: 3, Peak: 9, Up: 8, UpShare: 0.2, Away: []time.Duration{2 * s, 8 * s}},
		{Client: "a", Cut: true, Dials: 100},
		{Client: "a", N: 10, Ideal: s, T50: 3 * s, T99: 9 * s, T100: fleet.Never, Dials: 2, Peak: 6, Up: 9, Away: []time.Duration{s, fleet.Never}},
	}
	all := lab.ByClient(runs)
	require.Len(t, all, 2)
	a, b := all[0], all[1]
	require.Equal(t, lab.Rounds{runs[0], runs[2], runs[4]}, a, "the run that was cut is left out")
	require.Equal(t, lab.Rounds{runs[1]}, b)
	require.Equal(t, 1, a.Recovered())
	require.Equal(t, 90*s, a.Watched())
	require.Equal(t, 2.0, a.Median(func(r *lab.Result) float64 { return r.Dials }))
	require.Equal(t, 1.5, lab.Rounds{runs[0], runs[4]}.Median(func(r *lab.Result) float64 { return r.Dials }), "the mean of two")
	for want, of := range map[time.Duration]func(*lab.Result) time.Duration{
		2 * s:       func(r *lab.Result) time.Duration { return r.T50 },
		4 * s:       func(r *lab.Result) time.Duration { return r.T99 },
		fleet.Never: func(r *lab.Result) time.Duration { return r.T100 },
		5 * s:       func(r *lab.Result) time.Duration { return fleet.Mean(r.Away) },
		8 * s:       func(r *lab.Result) time.Duration { return fleet.Quantile(r.Away, 1) },
	} {
		require.Equal(t, want, a.Moment(of))
	}
}

func TestTheCSVHasALinePerRunAndPerBin(t *testing.T) {
	r := &lab.Result{Client: "a", Round: 2, N: 4, Ideal: time.Second, T50: time.Second, T99: fleet.Never, T100: fleet.Never, Dials: 1.5,
		Bins: []lab.Bin{{Dials: 4}, {Admitted: 2, Rejected: 1, Waiting: 3, Up: 2}}}
	var runs, series bytes.Buffer
	require.NoError(t, lab.Runs([]*lab.Result{r}).WriteCSV(&runs))
	require.NoError(t, lab.Series([]*lab.Result{r}).WriteCSV(&series))
	rows, err := csv.NewReader(&runs).ReadAll()
	require.NoError(t, err)
	require.Len(t, rows, 2)
	require.Equal(t, []string{"a", "2", "4", "1.000", "0.000", "1.000", "", ""}, rows[1][:8])
	require.Equal(t, "policy,round,t_s,dials,admitted,rejected,waiting,up\na,2,0.0,4,0,0,0,0\na,2,0.1,0,2,1,3,2\n", series.String())
}
