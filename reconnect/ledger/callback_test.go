package ledger_test

import (
	"context"
	"errors"
	"runtime"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/redial-go/redial/conn"
	"github.com/redial-go/redial/reconnect"
	"github.com/redial-go/redial/reconnect/ledger"
)

// An Encode that ends the goroutine, as t.Fatal does, stops no other message.
func TestAnEncodeThatEndsItsGoroutineRefusesItsMessageOnly(t *testing.T) {
	encode := func(e ledger.Entry) (conn.Message, error) {
		if string(e.Data) == "exit" {
			runtime.Goexit()
		}
		return encodeEntry(e)
	}
	withLedger(t, ledger.Options{Encode: encode}, func(t *testing.T, s *ledgerScene) {
		s.open()
		peer := s.accept()
		s.add("a", "exit", "c")
		require.Equal(t, "1:a, 3:c", sent(peer))
		require.Equal(t, []string{"2 refused"}, s.outcomes())
		require.ErrorContains(t, s.ledger.Wait(t.Context(), 2), "called runtime.Goexit")
	})
}

// An OnDone that ends the goroutine gets the outcomes of the others all the same.
func TestAnOnDoneThatEndsItsGoroutineGetsTheOthers(t *testing.T) {
	exit := func(ledger.Settled) { runtime.Goexit() }
	withLedger(t, ledger.Options{OnDone: exit}, func(t *testing.T, s *ledgerScene) {
		s.open()
		peer := s.accept()
		s.add("a", "bad", "c", "d")
		require.Equal(t, []string{"2 refused"}, s.outcomes(), "in the goroutine that writes")
		require.Equal(t, "1:a, 3:c, 4:d", sent(peer))
		go s.ledger.AckedTo(1, 3)
		require.Equal(t, []string{"1 acknowledged", "3 acknowledged"}, s.outcomes())
		s.conn.Close()
		<-s.conn.Done()
		require.Equal(t, []string{"4 left"}, s.outcomes())
	})
}

// exiting is a store whose Apply ends the goroutine as long as exits is set.
type exiting struct {
	memoryStore
	exits bool
}

func (s *exiting) Apply(c ledger.Change) error {
	if s.exits {
		runtime.Goexit()
	}
	return s.memoryStore.Apply(c)
}

func TestAStoreThatEndsItsGoroutineFailsTheAddOnly(t *testing.T) {
	store := &exiting{exits: true}
	withLedger(t, ledger.Options{Store: store}, func(t *testing.T, s *ledgerScene) {
		_, err := s.ledger.Add([]byte("a"))
		require.ErrorContains(t, err, "called runtime.Goexit")
		store.exits = false
		s.add("b")
		s.open()
		require.Equal(t, "1:b", sent(s.accept()))
	})
}

// OnStoreError may call the Ledger, and end its goroutine.
func TestOnStoreErrorMayAdd(t *testing.T) {
	store := &troubledStore{err: errDisk}
	var l *ledger.Ledger
	var again error
	o := ledger.Options{Store: store, OnStoreError: func(error) {
		store.fail(nil)
		_, again = l.Add([]byte("again"))
		l.Stats()
		runtime.Goexit()
	}}
	withLedger(t, o, func(t *testing.T, s *ledgerScene) {
		l = s.ledger
		s.open()
		peer := s.accept()
		_, err := l.Add([]byte("a"))
		require.ErrorIs(t, err, errDisk)
		synctest.Wait() // OnStoreError runs in the goroutine that stores
		require.NoError(t, again)
		s.add("b")
		require.Len(t, l.Unacked(), 2)
		require.Contains(t, sent(peer), "again")
	})
}

// Encode and OnDone may call the Ledger, whoever's goroutine it is.
func TestEncodeAndOnDoneMayCallTheLedger(t *testing.T) {
	for _, store := range []ledger.Store{nil, &memoryStore{}} {
		var l *ledger.Ledger
		o := ledger.Options{
			Store: store, Age: time.Hour,
			Encode: func(e ledger.Entry) (conn.Message, error) {
				l.Stats()
				l.Unacked()
				if string(e.Data) == "ack" {
					return conn.Message{}, errors.Join(l.AckedTo(1, e.Seq), errors.New("no"))
				}
				return encodeEntry(e)
			},
			OnDone: func(r ledger.Settled) {
				l.Stats()
				if r.Outcome != ledger.OutcomeLeft && string(r.Data) != "next" {
					_, err := l.Add([]byte("next"))
					require.NoError(t, err)
				}
			},
		}
		withLedger(t, o, func(t *testing.T, s *ledgerScene) {
			l = s.ledger
			s.open()
			peer := s.accept()
			s.add("ack")
			s.add("bad")
			require.Equal(t, []string{"1 acknowledged", "3 refused"}, s.outcomes())
			require.Equal(t, "2:next, 4:next", sent(peer))
			s.add("old")
			time.Sleep(time.Hour)
			require.Equal(t, []string{"2 expired", "4 expired", "5 expired"}, s.outcomes())
			require.Equal(t, "2:next, 4:next, 5:old, 6:next", sent(peer))
		})
	}
}

func TestStatsAddUp(t *testing.T) {
	store := &troubledStore{damaged: map[uint64]string{9: "half"}}
	o := ledger.Options{Store: store}
	withLedger(t, o, func(t *testing.T, s *ledgerScene) { s.add("a", "b") })
	withLedger(t, o, func(t *testing.T, s *ledgerScene) {
		s.open()
		s.accept()
		s.add("c")
		require.NoError(t, s.ledger.AckedTo(1, 2))
		n := s.ledger.Stats()
		require.Equal(t, []uint64{3, 1, 2, 1}, []uint64{n.Loaded, n.Added, n.Outcomes[ledger.OutcomeAcknowledged], n.Outcomes[ledger.OutcomeDamaged]})
		require.Equal(t, n.Loaded+n.Added, n.Outcomes[ledger.OutcomeAcknowledged]+n.Outcomes[ledger.OutcomeDamaged]+uint64(n.Unacked))
	})
}

// No acknowledgement is received while the callback runs, so a wait for one would never end.
func TestWaitInCallbackReturnsError(t *testing.T) {
	withLedger(t, ledger.Options{Messages: 1}, func(t *testing.T, s *ledgerScene) {
		var errs []error
		wait := func(ctx context.Context) {
			ctx, cancel := context.WithTimeout(ctx, time.Hour)
			defer cancel()
			_, addErr := s.ledger.AddWait(ctx, []byte("b"))
			errs = append(errs, addErr, s.ledger.Wait(ctx, 1), s.ledger.WaitAll(ctx))
		}
		s.options.OnMessage = func(ctx context.Context, _ reconnect.Message) { wait(ctx) }
		s.options.OnSeam = func(ctx context.Context, _ *reconnect.Seam) { wait(ctx) }
		s.options.OnSession = func(ctx context.Context, _ *reconnect.Opening) error { wait(ctx); return nil }
		s.add("a")
		s.open()
		began := time.Now()
		peer := s.accept()
		peer.Deliver(conn.TextMessage("news"))
		synctest.Wait()
		require.NoError(t, s.ledger.AckedTo(1, 1))
		peer.Deliver(conn.TextMessage("there is room, and nothing to wait for"))
		synctest.Wait()
		peer.Fail(errLedgerLost)
		synctest.Wait()
		require.Len(t, errs, 12)
		for _, err := range errs {
			require.ErrorIs(t, err, ledger.ErrInCallback)
		}
		require.Zero(t, time.Since(began))
		require.Equal(t, uint64(1), s.ledger.Stats().Added)
	})
}
