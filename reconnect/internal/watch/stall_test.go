package watch

import (
	"runtime"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// stalls is the option of most scenes.
var stalls = &StallOptions{Limit: 24 * time.Second}

func TestASessionWithoutMessagesIsCutAndTheNextOneHasTwiceTheLimit(t *testing.T) {
	play(t, []scene{
		{name: "none", stall: stalls, until: "1h", want: "24s cut: no data", stallsAfter: 1},
		{name: "bytes", stall: stalls, script: []step{{"5s", bytes}}, until: "1h", want: "24s cut: no data", stallsAfter: 1},
		{name: "a message", stall: stalls, script: []step{{"5s", message}, {"28s", message}}, until: "1h", want: "52s cut: no data", stallsAfter: 1},
		{name: "three before", stall: stalls, stalls: 3, until: "1h", want: "3m12s cut: no data", stallsAfter: 4},
		{name: "five before", stall: stalls, stalls: 5, until: "1h", want: "12m48s cut: no data", stallsAfter: 6},
		{name: "six before", stall: stalls, stalls: 6, until: "1h", want: "12m48s cut: no data", stallsAfter: 7},
		{name: "a message after three", stall: stalls, stalls: 3, script: []step{{"5s", message}}, until: "1h", want: "3m17s cut: no data", stallsAfter: 1},
		{name: "a message, and another end", stall: stalls, stalls: 3, script: []step{{"5s", message}}, until: "10s"},
		{name: "another end", stall: stalls, stalls: 3, until: "10s", stallsAfter: 3},
		{name: "Shutdown", stall: stalls, script: []step{{"5s", leave}}, until: "1h"},
	})
}

func TestThereIsNoStallWhileNobodyReads(t *testing.T) {
	play(t, []scene{
		{name: "at the limit", stall: stalls, script: []step{{"5s", handle("60s")}}, until: "1h",
			want: "10s slow OnMessage 5s, 15s overdue OnMessage 10s, 25s overdue OnMessage 20s, " +
				"45s overdue OnMessage 40s, 1m29s cut: no data",
			stallsAfter: 1},
		{name: "before", stall: stalls, script: []step{{"5s", handle("9s")}}, until: "1h",
			want: "10s slow OnMessage 5s, 38s cut: no data", stallsAfter: 1},
		{name: "for ever", stall: stalls, script: []step{{"5s", block("2h")}}, until: "1h"},
	})
}

// clock returns the time of the day. Each scene begins at midnight.
func clock(at time.Time) time.Duration { return at.Sub(at.Truncate(24 * time.Hour)) }

// open returns an Expected for a market that is open from and until these times of the day.
func open(from, until time.Duration) func(time.Time) bool {
	return func(at time.Time) bool { return clock(at) >= from && clock(at) < until }
}

func TestSilenceCountsFromWhenMessagesAreFirstExpected(t *testing.T) {
	expect := func(f func(time.Time) bool) *StallOptions { return &StallOptions{Limit: 24 * time.Second, Expected: f} }
	slow := func(time.Time) bool { time.Sleep(4 * time.Second); return false }
	play(t, []scene{
		{name: "always", stall: expect(open(0, time.Hour)), until: "1h", want: "24s cut: no data", stallsAfter: 1},
		{name: "never", stall: expect(open(0, 0)), until: "1h"},
		{name: "later", stall: expect(open(30*time.Second, time.Hour)), until: "1h", want: "54s cut: no data", stallsAfter: 1},
		{name: "not for long", stall: expect(open(0, 24*time.Second)), until: "1h"},
		{name: "a message", stall: expect(open(0, time.Hour)), script: []step{{"4s", message}}, until: "1h", want: "28s cut: no data", stallsAfter: 1},
		{name: "later, by the wall clock", stall: expect(open(time.Hour, 2*time.Hour)), script: []step{{"10s", suspend}}, until: "1h",
			want: "36s cut: no data", stallsAfter: 1},
		{name: "Goexit", stall: expect(func(time.Time) bool { runtime.Goexit(); return true }), until: "1h",
			want: "0s cut: Stall.Expected: the function did not return, but ended its goroutine (runtime.Goexit)"},
		{name: "Stop waits", stall: expect(slow), script: []step{{"1s", end}}, until: "1h",
			want: "1s await Stall.Expected, 4s stopped, 1s cut: use of closed network connection"},
	})
}

func TestExpectedIsAskedAtOnceAndEightTimesInTheLimit(t *testing.T) {
	var asked []time.Duration
	expected := func(at time.Time) bool { asked = append(asked, clock(at)/time.Second); return true }
	play(t, []scene{{name: "open", stall: &StallOptions{Limit: 24 * time.Second, Expected: expected}, until: "1h", want: "24s cut: no data", stallsAfter: 1}})
	once := []time.Duration{0, 3, 6, 9, 12, 15, 18, 21, 24}
	require.Equal(t, append(once, once...), asked)
}
