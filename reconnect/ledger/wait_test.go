package ledger_test

import (
	"context"
	"net"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/redial-go/redial/reconnect/ledger"
)

func TestWaitReturnsWhenTheMessageIsAcknowledged(t *testing.T) {
	withLedger(t, ledger.Options{}, func(t *testing.T, s *ledgerScene) {
		s.open()
		s.accept()
		s.add("a", "b")
		start := time.Now()
		time.AfterFunc(time.Minute, func() { s.ledger.AckedTo(1, 2) })
		require.NoError(t, s.ledger.Wait(t.Context(), 2))
		require.Equal(t, time.Minute, time.Since(start))
		require.NoError(t, s.ledger.Wait(t.Context(), 1), "it was acknowledged before")
		require.ErrorIs(t, s.ledger.Wait(t.Context(), 3), ledger.ErrUnknown)
		require.ErrorIs(t, s.ledger.Wait(t.Context(), 0), ledger.ErrUnknown)
	})
}

// The end of one context does not end another's wait for the same message.
func TestWaitEndsWithItsContext(t *testing.T) {
	withLedger(t, ledger.Options{}, func(t *testing.T, s *ledgerScene) {
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
	withLedger(t, ledger.Options{Age: time.Minute}, func(t *testing.T, s *ledgerScene) {
		s.open()
		s.add("a")
		var why *ledger.OutcomeError
		require.ErrorAs(t, s.ledger.Wait(t.Context(), 1), &why)
		require.Equal(t, []any{uint64(1), ledger.OutcomeExpired, ledger.ErrExpired}, []any{why.ID, why.Outcome, why.Err})
		require.False(t, why.Sent, "the peer cannot have it")
		require.Nil(t, why.Data)
		require.Equal(t, why, s.ledger.Wait(t.Context(), 1), "it is remembered")
	})
}

// What is remembered is bounded, and what is forgotten is not taken for acknowledged.
func TestWaitSaysWhenItDoesNotKnow(t *testing.T) {
	o := ledger.Options{Messages: 1, DropOldest: true}
	withLedger(t, o, func(t *testing.T, s *ledgerScene) {
		for id := uint64(1); id < 3000; id++ { // each drops the one before
			_, err := s.ledger.Add(nil)
			require.NoError(t, err)
			if id > 1025 {
				require.ErrorIs(t, s.ledger.Wait(t.Context(), id-1025), ledger.ErrUnknown)
				require.ErrorIs(t, s.ledger.Wait(t.Context(), id-1024), ledger.ErrFull)
			}
		}
	})
}

func TestWaitAllWaitsForEveryMessage(t *testing.T) {
	withLedger(t, ledger.Options{Age: time.Hour}, func(t *testing.T, s *ledgerScene) {
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

func TestWaitAllSaysThatAMessageWasLeft(t *testing.T) {
	withLedger(t, ledger.Options{}, func(t *testing.T, s *ledgerScene) {
		s.open()
		s.accept()
		s.add("a")
		s.close()
		require.ErrorIs(t, s.ledger.WaitAll(t.Context()), net.ErrClosed)
	})
}

func TestAsManyOutcomesAreRememberedAsThereMayBeMessages(t *testing.T) {
	withLedger(t, ledger.Options{Messages: 1500}, func(t *testing.T, s *ledgerScene) {
		for range 1500 {
			_, err := s.ledger.Add([]byte("bad"))
			require.NoError(t, err)
		}
		s.open()
		s.accept() // and each is refused
		var why *ledger.OutcomeError
		require.ErrorAs(t, s.ledger.Wait(t.Context(), 1), &why)
		require.Equal(t, ledger.OutcomeRefused, why.Outcome)
	})
}
