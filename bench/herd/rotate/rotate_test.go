package rotate_test

import (
	"context"
	"errors"
	"os"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"github.com/redial-go/redial/bench/herd/rotate"
)

func TestMain(m *testing.M) {
	if rotate.IsServer() {
		os.Exit(rotate.ServerMain())
	}
	goleak.VerifyTestMain(m)
}

// The times depend on the machine, and what is lost or comes twice on the way.
func TestWhatTheReaderHearsDependsOnTheWay(t *testing.T) {
	for _, way := range rotate.Ways() {
		t.Run(way.Name, func(t *testing.T) {
			t.Parallel()
			h, err := rotate.Pause(t.Context(), way, false, 200)
			require.NoError(t, err)
			require.Positive(t, h.Pause)
			switch way.Name {
			case "undisturbed":
				require.Zero(t, h.Missing+h.Twice)
			case "hold", "mix":
				require.Zero(t, h.Missing, "the server gives everything to both")
				require.Positive(t, h.Twice)
			case "no rotation":
				require.Positive(t, h.Missing)
			}
			require.False(t, h.Lost)
		})
	}
	t.Run("moves", func(t *testing.T) {
		t.Parallel()
		h, err := rotate.Pause(t.Context(), rotate.Ways()[1], true, 200)
		require.NoError(t, err)
		require.Zero(t, h.Missing+h.Twice)
	})
}

func TestTwoSessionsTakeMoreMemoryThanOne(t *testing.T) {
	t.Parallel()
	h, err := rotate.Memory(t.Context(), 50, 4*time.Second)
	require.NoError(t, err)
	require.Positive(t, h.Before)
	require.Greater(t, h.During, h.Before+h.Before/2)
	require.Less(t, h.After, h.During)
}

func TestLayersSeeEachMessage(t *testing.T) {
	for _, n := range []int{0, 3} {
		d, err := rotate.Layers(t.Context(), n, 1000)
		require.NoError(t, err)
		require.Positive(t, d)
	}
}

func TestAMeasurementEndsWithItsContext(t *testing.T) {
	ctx, cancel := context.WithCancelCause(t.Context())
	enough := errors.New("enough")
	cancel(enough)
	_, err := rotate.Pause(ctx, rotate.Ways()[0], false, 200)
	require.ErrorIs(t, err, enough)
	_, err = rotate.Memory(ctx, 10, time.Second)
	require.ErrorIs(t, err, enough)
}
