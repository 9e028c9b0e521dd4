package main

import (
	"context"
	"errors"
	"math"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// measure measures one row of all peers, and returns what it has of each.
func measure(t *testing.T, name string) map[string][]float64 {
	t.Helper()
	o := short(name)
	report, err := Run(t.Context(), o)
	require.NoError(t, err)
	require.Len(t, report.Rows, 1)
	figures := map[string][]float64{}
	for _, p := range report.Rows[0].Peers {
		for _, c := range p.Figures {
			require.Len(t, c, 1, p.Name)
			figures[p.Name] = append(figures[p.Name], c[0])
		}
	}
	row, err := findRow(rowsOf(shortSizes), name)
	require.NoError(t, err)
	for _, p := range all {
		if row.takes == nil || row.takes(p) {
			require.Contains(t, figures, p.name)
		}
	}
	return figures
}

// A client checks each message, and fails if one is not there, is another, or too many.
func TestEveryPeerReceivesSendsAndEchoes(t *testing.T) {
	for _, name := range []string{"receive-128", "receive-4k", "send-64", "echo-64", "echo-1"} {
		t.Run(name, func(t *testing.T) {
			figures := measure(t, name)
			require.Len(t, figures, len(all)+1)
			require.Contains(t, figures, "coder (A/A)")
		})
	}
}

// Each message has the time at which it was written.
func TestTheLatencyOfEveryPeerIsMeasured(t *testing.T) {
	for name, peers := range map[string]int{"latency": len(all), "machine": 1} {
		figures := measure(t, name)
		require.Len(t, figures, peers)
		for peer, f := range figures {
			require.Positive(t, f[0], peer)
			require.GreaterOrEqual(t, f[1], f[0], peer)
		}
	}
}

func TestEveryPeerIsConnectedOverTLSAgain(t *testing.T) {
	figures := measure(t, "tls-redial")
	require.Len(t, figures, len(all)+1)
	for peer, f := range figures {
		switch {
		case peer == "redial-framed": // a reset may come before it has read the ticket
			require.LessOrEqual(t, f[2], 1.0)
		case strings.HasPrefix(peer, "redial-"):
			require.Equal(t, 1.0, f[2], peer)
		default:
			require.Zero(t, f[2], peer)
		}
	}
}

func TestEveryPeerIsMeasuredIdle(t *testing.T) {
	for _, name := range []string{"idle-1000", "idle-1000-shared", "idle-10000", "idle-10000-shared", "idle-50000"} {
		t.Run(name, func(t *testing.T) {
			for peer, f := range measure(t, name) {
				require.Positive(t, f[3], peer)
			}
		})
	}
}

func TestOnlyPeersThatShareADialerAreMeasuredWithOneForAll(t *testing.T) {
	p, err := short("idle-1000-shared").plan()
	require.NoError(t, err)
	require.Equal(t, []string{"coder", "coder (A/A)", "redial-push", "redial-read", "redial-messages", "redial-run", "redial-framed"}, p.of(p.rows[0]))
}

func TestIdleConnectionWithTakeoverHoldsCompressor(t *testing.T) {
	for peer, f := range measure(t, "idle-1000-takeover") {
		require.Greater(t, f[0], 500_000.0, peer) // a flate.Writer has 1.2 MB, and that of gws 0.9 MB
		require.Positive(t, f[3], peer)
	}
}

func TestOnlyPeersThatAgreeToTakeoverAreMeasuredWithIt(t *testing.T) {
	p, err := short("idle-1000-takeover").plan()
	require.NoError(t, err)
	want := []string{"coder", "coder (A/A)", "gws", "redial-push", "redial-read", "redial-messages"}
	require.Equal(t, want, p.of(p.rows[0]))
}

func TestAsManyConnectionsAreOpenedAsMayBe(t *testing.T) {
	if _, err := freeMemory(); err != nil {
		t.Skip(err)
	}
	for peer, f := range measure(t, "idle-max") {
		require.EqualValues(t, shortSizes.pairs*shortSizes.inOne, f[0], peer)
	}
}

func TestEveryPeerThatRedialsIsBackAfterSIGKILL(t *testing.T) {
	figures := measure(t, "killed")
	require.Len(t, figures, 10)
	for peer, f := range figures {
		require.False(t, math.IsInf(f[0], 1), peer)
	}
}

func TestASilentServerIsNotNoticedAtOnce(t *testing.T) {
	figures := measure(t, "silent")
	require.Len(t, figures, len(all))
	for peer, f := range figures {
		require.True(t, math.IsInf(f[0], 1), peer)
	}
}

func TestOnlyReadersOfAWebSocketOrOfRedialAreToldOfAGap(t *testing.T) {
	deaf := []string{"nats", "autopaho"}
	for peer, f := range measure(t, "gap") {
		missing, told, redials := f[0], f[1], f[2]
		require.GreaterOrEqual(t, missing, 0.0, peer)
		require.Less(t, missing, float64(shortSizes.feed.Count), peer)
		require.GreaterOrEqual(t, redials, 1.0, peer)
		require.LessOrEqual(t, redials, float64(shortSizes.feed.Resets), peer)
		if slices.Contains(deaf, peer) {
			require.Zero(t, told, peer)
		} else {
			require.GreaterOrEqual(t, told, redials, peer)
			require.LessOrEqual(t, told, float64(shortSizes.feed.Resets), peer)
		}
	}
}

func TestARowThatFailsLeavesTheOthers(t *testing.T) {
	o := short("receive-128", "gap", "echo-64")
	o.Peers = []string{"tcp", "redial-framed"}
	broken := errors.New("broken")
	opened := 0
	o.client = func() (worker, error) {
		if opened++; opened == 2 {
			return nil, broken
		}
		return new(local), nil
	}
	report, err := Run(t.Context(), o)
	require.ErrorIs(t, err, broken)
	require.Regexp(t, `^measure receive-128, .*: broken$`, err.Error())
	require.Len(t, report.Rows, 3)
	require.Equal(t, []bool{true, false, false}, []bool{report.Rows[0].Cut, report.Rows[1].Cut, report.Rows[2].Cut})
	require.Zero(t, report.Rows[0].rounds())
	require.Equal(t, 1, report.Rows[2].rounds())
	require.Equal(t, time.Now().UTC().Format("2006"), report.Rows[2].Measured.Date[:4])
}

func TestRoundsThatOnlyWaitAreSideBySide(t *testing.T) {
	o := short("silent")
	o.Rounds, o.Peers = 3, []string{"tcp"}
	var begun sync.WaitGroup
	begun.Add(o.Rounds)
	all := make(chan struct{})
	go func() { begun.Wait(); close(all) }() // the rounds below wait for it
	ctx, cancel := context.WithTimeout(t.Context(), 20*time.Second)
	defer cancel()
	o.client = func() (worker, error) {
		begun.Done()
		select {
		case <-all:
			return new(local), nil
		case <-ctx.Done(): // the rounds are one after the other
			begun.Add(-o.Rounds + 1)
			return nil, context.Cause(ctx)
		}
	}
	report, err := Run(ctx, o)
	require.NoError(t, err)
	require.Equal(t, Spread{never, never, never}, report.Rows[0].peer("tcp").Figures[0])
}

func TestARoundThatFailsEndsThoseBesideIt(t *testing.T) {
	o := short("silent")
	o.Rounds, o.Peers, o.sizes.quiet = 3, []string{"tcp"}, time.Hour
	calls := make(chan error, 3)
	broken := errors.New("broken")
	calls <- nil
	calls <- nil
	calls <- broken
	o.client = func() (worker, error) { return new(local), <-calls }
	ctx, cancel := context.WithTimeout(t.Context(), 20*time.Second) // far less than an hour
	defer cancel()
	report, err := Run(ctx, o)
	require.ErrorIs(t, err, broken)
	require.True(t, report.Rows[0].Cut)
	require.Zero(t, report.Rows[0].rounds())
}

func TestAClientIsAProcess(t *testing.T) {
	o := short("receive-128", "idle-50000", "gap")
	o.Rounds, o.client, o.Peers = 2, nil, []string{"redial-push"}
	steps := 0
	o.Progress = func() { steps++ }
	report, err := Run(t.Context(), o)
	require.NoError(t, err)
	require.Len(t, report.Rows, 3)
	for _, r := range report.Rows {
		require.Equal(t, 2, r.rounds())
		for _, p := range r.Peers {
			for i, c := range p.Figures {
				require.Len(t, c, 2, "%s, %s, %s", r.Name, p.Name, r.Columns[i].Name)
			}
		}
	}
	require.Equal(t, []string{"coder", "coder (A/A)", "redial-push"}, []string{
		report.Rows[0].Peers[0].Name, report.Rows[0].Peers[1].Name, report.Rows[0].Peers[2].Name})
	require.Equal(t, 2*(3+3+1), steps) // with the base and its twin, but side by side
	require.Equal(t, steps, o.Steps())
}
