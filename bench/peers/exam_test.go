package main

import (
	"context"
	"runtime"
	"runtime/debug"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

func TestThereIsNoRoomForAPairThatWouldTakeTheLastTenthOfTheMemory(t *testing.T) {
	var r room
	for _, w := range []struct {
		free float64
		want bool
	}{
		{0.9, true},  // nothing is known of a pair
		{0.6, true},  // one takes 0.3
		{0.55, true}, // another 0.05, and 0.25 would be left
		{0.39, false},
	} {
		require.Equal(t, w.want, r.forOneMore(w.free), w.free)
	}
	require.False(t, new(room).forOneMore(0.05))
}

// fixed is a client that gives the same answer to every order.
type fixed answer

func (f fixed) do(context.Context, order) (answer, error) { return answer(f), nil }

func (fixed) end() {}

func TestIdleRowHasFiguresOfOneConnection(t *testing.T) {
	for _, name := range []string{"idle-1000", "idle-1000-shared", "idle-1000-takeover"} {
		o := short(name)
		o.Peers = []string{"redial-push"}
		o.client = func() (worker, error) {
			a := fixed{Bytes: 1000, Stack: 200, Resident: 3000, CPU: 40 * time.Microsecond, Wake: 50 * time.Microsecond}
			return a, nil
		}
		report, err := Run(t.Context(), o)
		require.NoError(t, err)
		row := report.Rows[0]
		require.Equal(t, 10, shortSizes.idle)
		require.Equal(t, []Spread{{100}, {20}, {300}, {4}, {5}}, row.peer("redial-push").Figures)
		require.Equal(t, "resident bytes", row.Columns[2].Name)
	}
}

func TestResidentMemoryGrowsWithUsedPages(t *testing.T) {
	debug.FreeOSMemory() // so that used gets new pages
	before, err := residentMemory()
	if err != nil {
		t.Skip(err)
	}
	const size = 64 << 20
	used := make([]byte, size)
	for i := 0; i < size; i += 4096 {
		used[i] = 1
	}
	after, err := residentMemory()
	require.NoError(t, err)
	require.Greater(t, after-before, int64(size/2)) // the runtime may return other pages meanwhile
	runtime.KeepAlive(used)
}
