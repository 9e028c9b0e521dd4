package bridge_test

import (
	"encoding/json"
	"math"
	"math/rand/v2"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/redial-go/redial/reconnect/bridge"
)

func TestACursorMovesOverWhatIsContiguous(t *testing.T) {
	var c bridge.Cursor
	require.Equal(t, bridge.PlacementNext, c.Take("a", 1))
	require.Equal(t, bridge.PlacementNext, c.Take("a", 2))
	require.Equal(t, bridge.PlacementSeen, c.Take("a", 1))
	require.Equal(t, bridge.PlacementSeen, c.Take("a", 0), "no stream has the number 0")
	require.Equal(t, bridge.Cursor{Epoch: "a", Offset: 2}, c)
	_, _, open := c.Missing()
	require.False(t, open)
}

func TestACursorIsPinnedWhileAGapIsOpen(t *testing.T) {
	c := bridge.Cursor{Offset: 10}
	require.Equal(t, bridge.PlacementGap, c.Take("", 13))
	require.Equal(t, bridge.PlacementGap, c.Take("", 14))
	require.Equal(t, bridge.PlacementGap, c.Take("", 17))
	require.Equal(t, bridge.PlacementSeen, c.Take("", 14), "it came before, after the gap")
	require.Equal(t, uint64(10), c.Offset)
	first, last, open := c.Missing()
	require.True(t, open)
	require.Equal(t, [2]uint64{11, 12}, [2]uint64{first, last})
	require.Equal(t, bridge.PlacementNext, c.Take("", 11))
	require.Equal(t, uint64(11), c.Offset)
	require.Equal(t, bridge.PlacementNext, c.Take("", 12))
	require.Equal(t, uint64(14), c.Offset, "closing the gap moves over what came after it")
	first, last, _ = c.Missing()
	require.Equal(t, [2]uint64{15, 16}, [2]uint64{first, last})
	require.Equal(t, bridge.PlacementNext, c.TakeRange("", 15, 16))
	require.Equal(t, bridge.Cursor{Offset: 17}, c, "nothing is kept when no gap is open")
}

func TestACopyMadeByAtHasNothingOfWhatCameAfterAGap(t *testing.T) {
	c := bridge.Cursor{Offset: 10}
	c.Take("", 12)
	stored := c.At()
	c.Take("", 11)
	require.Equal(t, uint64(12), c.Offset)
	require.Equal(t, bridge.Cursor{Offset: 10}, stored)
	require.Equal(t, bridge.PlacementGap, stored.Take("", 12))
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
	require.Equal(t, bridge.PlacementNewEpoch, c.Take("b", 1))
	require.Equal(t, bridge.PlacementNext, c.Take("a", 1))
	require.Equal(t, bridge.Cursor{Epoch: "a", Offset: 2}, c)
}

// Binance numbers a depth update from U to u. The first one after a snapshot has to contain the
// number after that of the snapshot, and may begin before it.
func TestAMessageMayStandForARangeOfNumbers(t *testing.T) {
	c := bridge.Cursor{Offset: 160}
	require.Equal(t, bridge.PlacementSeen, c.TakeRange("", 150, 160))
	require.Equal(t, bridge.PlacementNext, c.TakeRange("", 157, 163))
	require.Equal(t, bridge.PlacementGap, c.TakeRange("", 165, 170))
	require.Equal(t, bridge.PlacementGap, c.TakeRange("", 168, 175), "a part of it is new")
	require.Equal(t, bridge.PlacementSeen, c.TakeRange("", 166, 174))
	require.Equal(t, bridge.PlacementNext, c.TakeRange("", 164, 166))
	require.Equal(t, bridge.Cursor{Offset: 175}, c)
	require.Equal(t, bridge.PlacementNext, c.TakeRange("", 999, 176), "first is above last")
	require.Equal(t, bridge.Cursor{Offset: 176}, c)
}

func TestNumbersAtTheEndOfTheRangeDoNotOverflow(t *testing.T) {
	c := bridge.Cursor{Offset: math.MaxUint64 - 2}
	require.Equal(t, bridge.PlacementGap, c.Take("", math.MaxUint64))
	require.Equal(t, bridge.PlacementNext, c.Take("", math.MaxUint64-1))
	require.Equal(t, bridge.Cursor{Offset: math.MaxUint64}, c)
	require.Equal(t, bridge.PlacementSeen, c.Take("", math.MaxUint64))
}

func TestWhatCannotBeRememberedHasToComeAgain(t *testing.T) {
	var c bridge.Cursor
	for i := range uint64(64) {
		require.Equal(t, bridge.PlacementGap, c.Take("", 2*i+3))
	}
	require.Equal(t, bridge.PlacementBeyond, c.Take("", 1000))
	require.Equal(t, bridge.PlacementBeyond, c.Take("", 1000))
	require.Equal(t, bridge.PlacementGap, c.Take("", 130), "it joins what is remembered")
	for c.Offset < 130 {
		require.Equal(t, bridge.PlacementNext, c.Take("", c.Offset+1))
	}
	require.Equal(t, bridge.Cursor{Offset: 130}, c)
	require.Equal(t, bridge.PlacementGap, c.Take("", 1000))
}

// Random numbers, compared with a set.
func TestACursorAgreesWithASetOfNumbers(t *testing.T) {
	for seed := range uint64(200) {
		r := rand.New(rand.NewPCG(seed, 1))
		var c bridge.Cursor
		came := map[uint64]bool{}
		for range 300 {
			first := c.Offset + r.Uint64N(9)
			last := first + r.Uint64N(3)
			all := true
			for n := first; n <= last; n++ {
				all = all && (n == 0 || came[n])
			}
			step := c.TakeRange("", first, last)
			require.Equal(t, all, step == bridge.PlacementSeen, "seed %d: %d-%d is %v", seed, first, last, step)
			for n := first; n <= last; n++ {
				came[n] = true
			}
			var complete uint64
			for came[complete+1] {
				complete++
			}
			require.Equal(t, complete, c.Offset, "seed %d", seed)
		}
	}
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
