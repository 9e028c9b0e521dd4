package replay_test

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/redial-go/redial/reconnect/replay"
)

func TestWaitReturnsWhenTheMessageIsAcknowledged(t *testing.T) {
	withLedger(t, replay.LedgerOptions{}, func(t *testing.T, s *ledgerScene) {
		s.open()
		s.accept()
		s.add("a", "b")
		start := time.Now()
		time.AfterFunc(time.Minute, func() { s.ledger.AckedTo(1, 2) })
		require.NoError(t, s.ledger.Wait(t.Context(), 2))
		require.Equal(t, time.Minute, time.Since(start))
		require.NoError(t, s.ledger.Wait(t.Context(), 1), "it was acknowledged before")
		require.ErrorIs(t, s.ledger.Wait(t.Context(), 3), replay.ErrNoMessage)
		require.ErrorIs(t, s.ledger.Wait(t.Context(), 0), replay.ErrNoMessage)
	})
}

// The end of one context does not end another's wait for the same message.
func TestWaitEndsWithItsContext(t *testing.T) {
	withLedger(t, replay.LedgerOptions{}, func(t *testing.T, s *ledgerScene) {
		s.open()
		s.accept()
		s.add("a")
		other := make(chan error, 1)
		go func() { other <- s.ledger.Wait(context.Background(), 1) }()
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		require.ErrorIs(t, s.ledger.Wait(ctx, 1), context.DeadlineExceeded)
		require.NoError(t, s.ledger.AckedTo(1, 1))
		require.NoError(t, <-other)
		require.NoError(t, s.ledger.Wait(ctx, 1))
	})
}

func TestWaitTellsWhyAMessageWasNotAcknowledged(t *testing.T) {
	withLedger(t, replay.LedgerOptions{Age: time.Minute}, func(t *testing.T, s *ledgerScene) {
		s.open()
		s.add("a")
		var why *replay.OutcomeError
		require.ErrorAs(t, s.ledger.Wait(t.Context(), 1), &why)
		require.Equal(t, replay.OutcomeError{ID: 1, Outcome: replay.OutcomeExpired, Err: replay.ErrExpired}, *why)
		require.ErrorIs(t, s.ledger.Wait(t.Context(), 1), replay.ErrExpired, "it is remembered")
	})
}

// What is remembered is bounded, and what is forgotten is not taken for acknowledged.
func TestWaitSaysWhenItDoesNotKnow(t *testing.T) {
	o := replay.LedgerOptions{Messages: 1, Full: replay.FullDropOldest}
	withLedger(t, o, func(t *testing.T, s *ledgerScene) {
		for id := uint64(1); id < 3000; id++ { // each drops the one before
			_, err := s.ledger.Add(nil)
			require.NoError(t, err)
			if id > 1025 {
				require.ErrorIs(t, s.ledger.Wait(t.Context(), id-1025), replay.ErrUnknown)
				require.ErrorIs(t, s.ledger.Wait(t.Context(), id-1024), replay.ErrFull)
			}
		}
	})
}

func TestWaitAllWaitsForEveryMessage(t *testing.T) {
	withLedger(t, replay.LedgerOptions{Age: time.Hour}, func(t *testing.T, s *ledgerScene) {
		require.NoError(t, s.ledger.WaitAll(t.Context()))
		s.open()
		s.accept()
		s.add("a", "b")
		done := make(chan error, 1)
		go func() { done <- s.ledger.WaitAll(context.Background()) }()
		require.NoError(t, s.ledger.Acked(1, 2))
		synctest.Wait()
		require.Empty(t, done)
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		require.ErrorIs(t, s.ledger.WaitAll(ctx), context.DeadlineExceeded)
		time.Sleep(time.Hour)
		require.NoError(t, <-done, "the other one has expired")
	})
}
