package ledger_test

import (
	"math"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/redial-go/redial/reconnect"
	"github.com/redial-go/redial/reconnect/budget"
	"github.com/redial-go/redial/reconnect/ledger"
)

// epochs returns a resume that names an epoch.
func epochs(l *ledger.Ledger, epoch string, have uint64) func(o *reconnect.Opening) error {
	return func(o *reconnect.Opening) error { return l.ResumeEpoch(o, epoch, have) }
}

// With ResetKeepNumbers a peer that knows less gets all that is unacknowledged under its old number.
func TestKeptNumbersGoOnWithAPeerThatKnowsLess(t *testing.T) {
	for _, stored := range []bool{false, true} {
		o := ledger.Options{OnReset: ledger.ResetKeepNumbers}
		if stored {
			o.Store = &memoryStore{}
		}
		withLedger(t, o, func(t *testing.T, s *ledgerScene) {
			s.resume = epochs(s.ledger, "room 1", 0)
			s.open()
			peer := s.accept()
			s.add("a", "b", "c", "d")
			require.NoError(t, s.ledger.AckedTo(1, 2))
			peer.Fail(errLedgerLost)
			s.resume = epochs(s.ledger, "room 2", 0)
			peer = s.accept()
			s.add("e")
			require.Equal(t, "3:c again, 4:d again, 5:e", sent(peer))
			require.NoError(t, s.ledger.AckedTo(1, 4), "the old room's word is late")
			require.Len(t, s.ledger.Unacked(), 3)
			require.NoError(t, s.ledger.AckedTo(2, 3))
			peer.Fail(errLedgerLost)
			s.resume = epochs(s.ledger, "room 2", 1) // it has lost the end of its log
			peer = s.accept()
			require.Equal(t, "4:d again, 5:e again", sent(peer))
			peer.Fail(errLedgerLost)
			s.resume = epochs(s.ledger, "room 3", 4) // a copy of the last that has d
			require.Equal(t, "5:e again", sent(s.accept()))
			require.Equal(t, []string{"1 acknowledged", "2 acknowledged", "3 acknowledged", "4 acknowledged"}, s.outcomes())
			require.Equal(t, uint64(3), s.ledger.Stats().Resets)
		})
	}
}

func TestKeptNumbersGoOnWithoutEpochs(t *testing.T) {
	withLedger(t, ledger.Options{OnReset: ledger.ResetKeepNumbers}, func(t *testing.T, s *ledgerScene) {
		s.open()
		peer := s.accept()
		s.add("a", "b")
		require.NoError(t, s.ledger.AckedTo(1, 1))
		peer.Fail(errLedgerLost)
		s.resume = resumed(s.ledger, 0, false)
		peer = s.accept()
		s.add("c")
		require.Equal(t, "2:b again, 3:c", sent(peer))
		peer.Fail(errLedgerLost)
		s.resume = resumed(s.ledger, 4, false)
		s.accept()
		var wrong *ledger.SeqError
		require.ErrorAs(t, s.conn.Status().Err, &wrong)
	})
}

// The Store is lost, and the peer is not: numbers that it would take for old ones are not used.
func TestKeptNumbersBeginAfterThePeersIfTheStoreIsLost(t *testing.T) {
	o := ledger.Options{OnReset: ledger.ResetKeepNumbers, Store: &memoryStore{}}
	withLedger(t, o, func(t *testing.T, s *ledgerScene) {
		s.resume = epochs(s.ledger, "room", 7)
		s.add("a")
		s.open()
		require.Equal(t, "8:a", sent(s.accept()))
	})
}

// In a rotation an acknowledgement by the old session may be read before what the next one says,
// which is older.
func TestInARotationHaveMayBeOlderThanTheLastAcknowledgement(t *testing.T) {
	withLedger(t, ledger.Options{}, func(t *testing.T, s *ledgerScene) {
		s.open()
		s.accept()
		s.add("a", "b", "c")
		s.resume = func(o *reconnect.Opening) error {
			require.True(t, o.Planned)
			require.NoError(t, s.ledger.AckedTo(1, 2))
			return s.ledger.Resume(o, 1, true)
		}
		s.conn.Rotate(1, reconnect.Advice{})
		next := s.accept()
		require.NoError(t, s.conn.Status().Err)
		require.Equal(t, "3:c again", sent(next))
	})
}

// A session replaces another while the Store is slow with the new numbers of that one. Both have
// said the same, so the numbers begin once: else the peer would take new messages for old ones.
func TestNewNumbersBeginOnceForTwoSessions(t *testing.T) {
	store := &troubledStore{}
	withLedger(t, ledger.Options{Store: store}, func(t *testing.T, s *ledgerScene) {
		s.add("a", "b", "c")
		store.slow(time.Second)
		s.resume = epochs(s.ledger, "x", 0)
		s.open()
		peer := s.accept()
		resumed, goOn := make(chan struct{}), make(chan struct{})
		s.resume = func(o *reconnect.Opening) error {
			err := s.ledger.ResumeEpoch(o, "x", 0)
			close(resumed)
			<-goOn
			return err
		}
		s.conn.Rotate(1, reconnect.Advice{})
		next := s.accept()
		<-resumed
		require.Equal(t, "", sent(peer), "the new numbers are not stored yet")
		time.Sleep(time.Second)
		require.Equal(t, "1:a, 2:b, 3:c", sent(peer))
		require.NoError(t, s.ledger.AckedTo(1, 2))
		close(goOn)
		time.Sleep(time.Hour)
		require.Equal(t, "3:c again", sent(next))
		require.Equal(t, uint64(1), s.ledger.Stats().Resets)
	})
}

// So it is if the next session is ready before the numbers are stored.
func TestNewNumbersBeginOnceThoughTheNextSessionIsReadyFirst(t *testing.T) {
	store := &troubledStore{}
	withLedger(t, ledger.Options{Store: store}, func(t *testing.T, s *ledgerScene) {
		s.add("a", "b")
		store.slow(time.Minute)
		s.resume = epochs(s.ledger, "x", 0)
		s.open()
		s.accept()
		s.conn.Rotate(1, reconnect.Advice{})
		next := s.accept()
		require.Equal(t, "", sent(next))
		time.Sleep(time.Hour)
		require.Equal(t, "1:a, 2:b", sent(next))
		require.Equal(t, uint64(1), s.ledger.Stats().Resets)
	})
}

// A write that was withdrawn before the new numbers began says nothing of those.
func TestNoMessageRepeatsANewNumberThatWasNotSent(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newLedgerScene(t, ledger.Options{})
		defer s.close()
		s.options.Pace = budget.Window{N: 1, Per: time.Minute}
		s.open()
		peer := s.accept()
		s.add("a", "b")
		time.Sleep(2 * time.Minute)
		require.Equal(t, "1:a, 2:b", sent(peer))
		peer.Fail(errLedgerLost)
		s.accept() // a goes again, and b waits to
		s.resume = resumed(s.ledger, 0, false)
		s.conn.Rotate(2, reconnect.Advice{})
		next := s.accept()
		time.Sleep(2 * time.Minute)
		require.Equal(t, "1:a, 2:b", sent(next))
	})
}

func TestANumberThatLeavesNoRoomIsAnError(t *testing.T) {
	withLedger(t, ledger.Options{}, func(t *testing.T, s *ledgerScene) {
		s.add("a")
		s.resume = resumed(s.ledger, math.MaxUint64, false)
		s.open()
		s.accept()
		var wrong *ledger.SeqError
		require.ErrorAs(t, s.conn.Status().Err, &wrong)
		s.resume = epochs(s.ledger, strings.Repeat("x", 1025), 0)
		s.accept()
		require.ErrorContains(t, s.conn.Status().Err, "the epoch has more than 1024 bytes")
		s.resume = nil
		require.Equal(t, "1:a", sent(s.accept()))
	})
}
