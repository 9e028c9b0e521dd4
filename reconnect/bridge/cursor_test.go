package bridge_test

import (
	"encoding/json"
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

func TestTheTextFormKeepsThePlace(t *testing.T) {
	for text, c := range map[string]bridge.Cursor{
		"0":           {},
		"42":          {Offset: 42},
		"42@a":        {Epoch: "a", Offset: 42},
		"7@x%40+y%0A": {Epoch: "x@ y\n", Offset: 7},
	} {
		require.Equal(t, text, c.String())
		var back bridge.Cursor
		require.NoError(t, back.UnmarshalText([]byte(text)))
		require.Equal(t, c, back)
	}
	data, err := json.Marshal(map[string]bridge.Cursor{"room": {Epoch: "a\xff", Offset: 1}})
	require.NoError(t, err)
	require.Equal(t, `{"room":"1@a%FF"}`, string(data))
}

func TestABadTextIsAnErrorWithoutTheText(t *testing.T) {
	for _, text := range []string{"", "@a", "-1", "+1", "1.5", "18446744073709551616", "1@%zz", "hush"} {
		c := bridge.Cursor{Offset: 3}
		require.EqualError(t, c.UnmarshalText([]byte(text)), `bridge: a cursor is written as "42@epoch" or "42"`)
		require.Equal(t, bridge.Cursor{Offset: 3}, c)
	}
}

func FuzzCursorText(f *testing.F) {
	f.Add("42@epoch")
	f.Add("0")
	f.Add("18446744073709551615@a%40b+c")
	f.Add("1@%")
	f.Fuzz(func(t *testing.T, text string) {
		var c, again bridge.Cursor
		if c.UnmarshalText([]byte(text)) != nil {
			require.Equal(t, bridge.Cursor{}, c)
			return
		}
		canonical := c.String()
		require.NoError(t, again.UnmarshalText([]byte(canonical)))
		require.Equal(t, c, again)
		require.Equal(t, canonical, again.String())
	})
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
