package ledger_test

import (
	"errors"
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/redial-go/redial/conn"
	"github.com/redial-go/redial/reconnect"
	"github.com/redial-go/redial/reconnect/ledger"
)

// A peer that has forgotten gets what is unacknowledged under new numbers, without gaps.
func TestAPeerThatHasForgottenGetsNewNumbers(t *testing.T) {
	withLedger(t, ledger.Options{}, func(t *testing.T, s *ledgerScene) {
		s.open()
		peer := s.accept()
		s.add("a", "b", "c", "d")
		require.NoError(t, s.ledger.Acked(1, 1))
		require.NoError(t, s.ledger.Acked(1, 3))
		peer.Fail(errLedgerLost)
		s.resume = resumed(s.ledger, 0, false)
		peer = s.accept()
		s.add("e")
		require.Equal(t, "1:b, 2:d, 3:e", sent(peer))
		require.NoError(t, s.ledger.AckedTo(2, 2))
		require.Equal(t, []string{"1 acknowledged", "3 acknowledged", "2 acknowledged", "4 acknowledged"}, s.outcomes())
		e := ledger.Record{ID: 5, Seq: 3, Data: []byte("e"), Added: time.Unix(0, time.Now().UnixNano())}
		require.Equal(t, []ledger.Entry{{Record: e, Sent: true, Again: true}}, s.ledger.Unacked())
	})
}

// What was written before the reset is reported, and what was not is sent under a new number.
func TestAPeerThatHasForgottenIsReported(t *testing.T) {
	withLedger(t, ledger.Options{OnReset: ledger.ResetReport}, func(t *testing.T, s *ledgerScene) {
		s.open()
		peer := s.accept()
		s.add("a", "b")
		peer.Fail(errLedgerLost)
		synctest.Wait()
		s.add("c")
		s.resume = resumed(s.ledger, 7, false)
		require.Equal(t, "8:c", sent(s.accept()))
		require.Equal(t, []string{"1 forgotten by the peer", "2 forgotten by the peer"}, s.outcomes())
		require.ErrorContains(t, s.ledger.Wait(t.Context(), 1), "the peer has forgotten which messages it got")
		require.NoError(t, s.ledger.AckedTo(2, 8))
		require.NoError(t, s.ledger.Wait(t.Context(), 3))
	})
}

// An acknowledgement that came before the reset, and is read after it, means other messages.
func TestAcknowledgementsOfTheOldNumbersDoNothing(t *testing.T) {
	withLedger(t, ledger.Options{}, func(t *testing.T, s *ledgerScene) {
		s.open()
		peer := s.accept()
		s.add("a", "b")
		peer.Fail(errLedgerLost)
		s.resume = resumed(s.ledger, 0, false)
		s.accept()
		require.NoError(t, s.ledger.AckedTo(1, 2))
		require.NoError(t, s.ledger.Acked(1, 9))
		require.Empty(t, s.outcomes())
	})
}

// New numbers wait for a session that is ready. Until then the peer's word of them is owed.
func TestAResetIsOwedUntilASessionIsReady(t *testing.T) {
	withLedger(t, ledger.Options{}, func(t *testing.T, s *ledgerScene) {
		s.open()
		peer := s.accept()
		s.add("a", "b")
		require.NoError(t, s.ledger.AckedTo(1, 1))
		peer.Fail(errLedgerLost)
		s.resume = func(o *reconnect.Opening) error {
			require.NoError(t, s.ledger.Resume(o, 5, false))
			return errors.New("the login fails after that")
		}
		s.accept()
		require.Equal(t, uint64(0), s.ledger.Stats().Resets)
		s.resume = resumed(s.ledger, 5, true) // the peer knows us by now, but nothing has come
		require.Equal(t, "6:b", sent(s.accept()))
		require.Equal(t, []string{"1 acknowledged"}, s.outcomes())
	})
}

// A peer that had forgotten the numbers knows the new ones, and later sessions go on with these.
func TestAResetIsOwedOnce(t *testing.T) {
	withLedger(t, ledger.Options{}, func(t *testing.T, s *ledgerScene) {
		s.open()
		s.resume = resumed(s.ledger, 5, false)
		peer := s.accept()
		s.add("a", "b")
		require.Equal(t, "6:a, 7:b", sent(peer))
		for _, again := range []func(*reconnect.Opening) error{resumed(s.ledger, 6, true), nil} {
			peer.Fail(errLedgerLost)
			s.resume = again
			peer = s.accept()
			require.Equal(t, "7:b again", sent(peer))
		}
		require.Equal(t, uint64(1), s.ledger.Stats().Resets)
	})
}

func TestAResetIsOwedWithoutResumeToo(t *testing.T) {
	withLedger(t, ledger.Options{}, func(t *testing.T, s *ledgerScene) {
		s.add("a", "b")
		s.open()
		s.resume = func(o *reconnect.Opening) error {
			require.NoError(t, s.ledger.Resume(o, 5, false))
			return errLedgerLost
		}
		s.accept()
		s.resume = nil
		require.Equal(t, "1:a, 2:b", sent(s.accept()))
		require.Equal(t, uint64(1), s.ledger.Stats().Resets)
	})
}

// Until the new numbers have begun, an acknowledgement of the new session can mean nothing.
func TestAcknowledgementsBeforeTheNewNumbersDoNothing(t *testing.T) {
	withLedger(t, ledger.Options{}, func(t *testing.T, s *ledgerScene) {
		s.open()
		peer := s.accept()
		s.add("a")
		peer.Fail(errLedgerLost)
		s.resume = func(o *reconnect.Opening) error {
			require.NoError(t, s.ledger.Resume(o, 0, false))
			return s.ledger.AckedTo(o.Session, 1)
		}
		require.Equal(t, "1:a", sent(s.accept()))
		require.Empty(t, s.outcomes())
	})
}

// What was stored before the first session was ever ready was not sent, so it is not forgotten.
func TestWhatWasStoredBeforeTheFirstSessionIsSent(t *testing.T) {
	var store memoryStore
	o := ledger.Options{Store: &store, OnReset: ledger.ResetReport}
	withLedger(t, o, func(t *testing.T, s *ledgerScene) { s.add("a") })
	withLedger(t, o, func(t *testing.T, s *ledgerScene) {
		s.resume = func(o *reconnect.Opening) error { return s.ledger.ResumeEpoch(o, "x", 0) }
		s.open()
		require.Equal(t, "1:a", sent(s.accept()))
	})
}

// The Ledger knows by the epoch whether it is the same peer, over a restart too.
func TestAnEpochShowsThatThePeerHasForgotten(t *testing.T) {
	var store memoryStore
	life := func(epoch string, have uint64, add, want string) {
		t.Helper()
		withLedger(t, ledger.Options{Store: &store, OnReset: ledger.ResetReport}, func(t *testing.T, s *ledgerScene) {
			s.resume = func(o *reconnect.Opening) error { return s.ledger.ResumeEpoch(o, epoch, have) }
			if add != "" {
				s.add(add)
			}
			s.open()
			require.Equal(t, want, sent(s.accept()))
		})
	}
	life("x", 0, "a", "1:a")
	life("x", 0, "b", "1:a again, 2:b")
	life("x", 1, "", "2:b again")
	life("y", 0, "c", "1:c") // b is reported
	life("y", 1, "d", "2:d")
	store = memoryStore{}
	life("y", 2, "e", "3:e") // the store is lost, and the peer is not
}

func TestAnEmptyEpochIsAnError(t *testing.T) {
	withLedger(t, ledger.Options{}, func(t *testing.T, s *ledgerScene) {
		s.resume = func(o *reconnect.Opening) error { return s.ledger.ResumeEpoch(o, "", 0) }
		s.open()
		s.accept()
		require.ErrorContains(t, s.conn.Status().Err, "the epoch is empty")
	})
}

// While one session replaces another, messages go by the next one when it is ready, and what the
// old one has written since Resume goes by both.
func TestInARotationTheNewestReadySessionWrites(t *testing.T) {
	withLedger(t, ledger.Options{}, func(t *testing.T, s *ledgerScene) {
		s.open()
		old := s.accept()
		s.add("a", "b")
		opened := make(chan struct{})
		s.resume = func(o *reconnect.Opening) error {
			<-opened
			return s.ledger.Resume(o, 1, true)
		}
		s.conn.Rotate(1, reconnect.Advice{})
		next := s.accept()
		s.add("c")
		close(opened)
		synctest.Wait()
		s.add("d")
		require.Equal(t, "1:a, 2:b, 3:c", sent(old))
		require.Equal(t, "2:b again, 3:c again, 4:d", sent(next))
		require.NoError(t, s.ledger.AckedTo(1, 3)) // by the old one, which is still read
		require.Len(t, s.ledger.Unacked(), 1)
	})
}

// SessionReady of the old session returns when the next session is ready already. The peer of the old one has another epoch.
func TestASlowSessionReadyBeginsNoNewNumbers(t *testing.T) {
	withLedger(t, ledger.Options{}, func(t *testing.T, s *ledgerScene) {
		s.options.Run.Trace = &reconnect.Trace{SessionReady: func(s *reconnect.Session) {
			if s.Number == 1 {
				time.Sleep(10 * time.Second)
			}
		}}
		s.resume = func(o *reconnect.Opening) error {
			return s.ledger.ResumeEpoch(o, fmt.Sprint("epoch ", o.Session), 0)
		}
		s.open()
		s.accept()
		s.conn.Rotate(1, reconnect.Advice{})
		next := s.accept()
		s.add("a", "b")
		require.NoError(t, s.ledger.AckedTo(2, 1))
		time.Sleep(20 * time.Second)
		s.add("c")
		require.Equal(t, "1:a, 2:b, 3:c", sent(next))
		require.NoError(t, s.ledger.AckedTo(2, 3))
		require.Zero(t, s.ledger.Stats().Unacked)
	})
}

// The next session of a rotation finds that the peer has forgotten, and fails. The old one goes on
// with the old numbers.
func TestARotationThatFailsChangesNoNumber(t *testing.T) {
	withLedger(t, ledger.Options{}, func(t *testing.T, s *ledgerScene) {
		s.open()
		old := s.accept()
		s.add("a", "b")
		s.resume = func(o *reconnect.Opening) error {
			require.NoError(t, s.ledger.ResumeEpoch(o, "another", 0))
			return errors.New("refused")
		}
		s.conn.Rotate(1, reconnect.Advice{})
		s.accept()
		s.add("c")
		require.Equal(t, "1:a, 2:b, 3:c", sent(old))
		require.NoError(t, s.ledger.AckedTo(1, 3))
		require.Equal(t, 0, s.ledger.Stats().Unacked)
	})
}

// A write that waits in the old session goes by the next as soon as that is ready.
func TestAWriteThatWaitsMovesToTheNextSession(t *testing.T) {
	withLedger(t, ledger.Options{}, func(t *testing.T, s *ledgerScene) {
		s.options.WhenDown = reconnect.WhenDownWait
		s.open()
		old := s.accept()
		old.Hold()
		s.add("a", "b")
		s.conn.Rotate(1, reconnect.Advice{})
		next := s.accept()
		require.Equal(t, "", sent(next)) // a is being written
		old.Release()
		require.Equal(t, "1:a", sent(old))
		require.Equal(t, "1:a again, 2:b", sent(next))
	})
}

// The reader of the Conn gets what is no acknowledgement.
func TestAcknowledgementsAreTakenOutOfTheStream(t *testing.T) {
	ack := func(m reconnect.Message) (seq uint64, ok bool) {
		n, _ := fmt.Sscanf(string(m.Data), "ack %d", &seq)
		return seq, n == 1
	}
	withLedger(t, ledger.Options{Ack: ack}, func(t *testing.T, s *ledgerScene) {
		s.open()
		peer := s.accept()
		s.add("a", "b", "c")
		peer.Deliver(conn.TextMessage("ack 2"))
		peer.Deliver(conn.TextMessage("hello"))
		m, err := s.conn.Read(t.Context(), nil)
		require.NoError(t, err)
		require.Equal(t, "hello", string(m.Data))
		require.Equal(t, []string{"1 acknowledged", "2 acknowledged"}, s.outcomes())
		peer.Deliver(conn.TextMessage("ack 4")) // was never sent
		peer = s.accept()
		require.Equal(t, "3:c again", sent(peer))
	})
}
