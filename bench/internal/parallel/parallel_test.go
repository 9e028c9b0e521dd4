package parallel_test

import (
	"context"
	"errors"
	"sync/atomic"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/redial-go/redial/bench/internal/parallel"
)

func TestEachPartIsDoneOnce(t *testing.T) {
	done := make([]atomic.Int64, 100)
	require.NoError(t, parallel.Do(t.Context(), len(done), 7, func(i int) error { done[i].Add(1); return nil }))
	for i := range done {
		require.EqualValues(t, 1, done[i].Load())
	}
}

func TestOneWorkerGoesInOrderAndEndsWithTheFirstError(t *testing.T) {
	wrong := errors.New("wrong")
	var did []int
	err := parallel.Do(t.Context(), 9, 1, func(i int) error {
		if did = append(did, i); i == 2 {
			return wrong
		}
		return nil
	})
	require.Equal(t, wrong, err)
	require.Equal(t, []int{0, 1, 2}, did)
}

func TestTheEndOfTheContextIsAnErrorIfSomethingIsLeft(t *testing.T) {
	enough := errors.New("enough")
	ctx, cancel := context.WithCancelCause(t.Context())
	f := func(i int) error {
		if i == 3 {
			cancel(enough)
		}
		return nil
	}
	require.Equal(t, enough, parallel.Do(ctx, 9, 1, f))
	require.NoError(t, parallel.Do(t.Context(), 4, 1, f))
}
