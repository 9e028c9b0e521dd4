package bridge_test

import (
	"math"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/redial-go/redial/reconnect/bridge"
)

func TestACursorMovesToTheNextNumber(t *testing.T) {
	var c bridge.Cursor
	require.Equal(t, bridge.PlacementNext, c.Take("a", 1))
	require.Equal(t, bridge.PlacementNext, c.Take("a", 2))
	require.Equal(t, bridge.PlacementSeen, c.Take("a", 1))
	require.Equal(t, bridge.PlacementSeen, c.Take("a", 0), "no stream has the number 0")
	require.Equal(t, bridge.Cursor{Epoch: "a", Offset: 2}, c)
}

func TestACursorStaysBeforeAGap(t *testing.T) {
	c := bridge.Cursor{Offset: 10}
	require.Equal(t, bridge.PlacementGap, c.Take("", 12))
	require.Equal(t, bridge.Cursor{Offset: 10}, c)
	require.Equal(t, bridge.PlacementNext, c.Take("", 11))
	require.Equal(t, bridge.PlacementNext, c.Take("", 12), "it comes again")
}

func TestOffsetsOfAnotherEpochMeanNothing(t *testing.T) {
	c := bridge.Cursor{Epoch: "a", Offset: 10}
	require.Equal(t, bridge.PlacementNewEpoch, c.Take("b", 11))
	require.Equal(t, bridge.PlacementNewEpoch, c.Take("", 11))
	require.Equal(t, bridge.Cursor{Epoch: "a", Offset: 10}, c, "the caller decides")
	zero := bridge.Cursor{Epoch: "b"}
	require.Equal(t, bridge.PlacementNewEpoch, zero.Take("a", 1))
}

func TestAZeroCursorTakesTheEpochOver(t *testing.T) {
	var c bridge.Cursor
	require.Equal(t, bridge.PlacementGap, c.Take("a", 2))
	require.Equal(t, bridge.PlacementNext, c.Take("b", 1))
	require.Equal(t, bridge.Cursor{Epoch: "b", Offset: 1}, c)
}

func TestNumbersAtTheEndOfTheRangeDoNotOverflow(t *testing.T) {
	c := bridge.Cursor{Offset: math.MaxUint64 - 2}
	require.Equal(t, bridge.PlacementGap, c.Take("", math.MaxUint64))
	require.Equal(t, bridge.PlacementNext, c.Take("", math.MaxUint64-1))
	require.Equal(t, bridge.PlacementNext, c.Take("", math.MaxUint64))
	require.Equal(t, bridge.PlacementSeen, c.Take("", math.MaxUint64))
	require.Equal(t, bridge.Cursor{Offset: math.MaxUint64}, c)
}

func TestTakeAllocatesNothingInOrder(t *testing.T) {
	var c bridge.Cursor
	n := uint64(0)
	require.Zero(t, testing.AllocsPerRun(1000, func() {
		n++
		c.Take("epoch", n)
		c.Take("epoch", n)
	}))
}

func BenchmarkCursorTake(b *testing.B) {
	b.ReportAllocs()
	var c bridge.Cursor
	for n := uint64(1); b.Loop(); n++ {
		c.Take("epoch", n)
	}
}

func TestTheCursorOfAnEvent(t *testing.T) {
	for kind, has := range map[bridge.Kind]bool{
		bridge.EventLive: true, bridge.EventPast: true, bridge.EventSnapshot: true, bridge.EventHealed: true, bridge.EventLost: true,
		bridge.EventStale: false, bridge.EventOther: false,
	} {
		e := bridge.Event[string, string]{Kind: kind, Item: item{Key: "a", Epoch: "x", Last: 7}}
		at, ok := e.Cursor()
		require.Equal(t, has, ok, kind)
		require.Equal(t, has, at == bridge.Cursor{Epoch: "x", Offset: 7}, kind)
		e.Last = 0
		_, ok = e.Cursor()
		require.False(t, ok, kind)
	}
}
