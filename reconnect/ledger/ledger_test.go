package ledger_test

import (
	"context"
	"errors"
	"net"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/redial-go/redial/conn"
	"github.com/redial-go/redial/conn/conntest"
	"github.com/redial-go/redial/reconnect"
	"github.com/redial-go/redial/reconnect/budget"
	"github.com/redial-go/redial/reconnect/ledger"
)

func TestMessagesAreSentInOrderWhenASessionIsReady(t *testing.T) {
	withLedger(t, ledger.Options{}, func(t *testing.T, s *ledgerScene) {
		s.add("a", "b")
		s.open()
		peer := s.accept()
		s.add("c")
		require.Equal(t, "1:a, 2:b, 3:c", sent(peer))
		require.NoError(t, s.ledger.AckedTo(1, 2))
		require.Equal(t, []string{"1 acknowledged", "2 acknowledged"}, s.outcomes())
		require.Equal(t, 1, s.ledger.Stats().Unacked)
	})
}

// After a redial what the peer lacks comes first, in order, and nothing that it has.
func TestWhatThePeerLacksIsSentAgainBeforeAnythingNew(t *testing.T) {
	withLedger(t, ledger.Options{}, func(t *testing.T, s *ledgerScene) {
		s.open()
		peer := s.accept()
		s.add("a", "b", "c")
		peer.Fail(errLedgerLost)
		synctest.Wait()
		s.add("d")
		s.resume = resumed(s.ledger, 1, true)
		peer = s.accept()
		s.add("e")
		require.Equal(t, "2:b again, 3:c again, 4:d, 5:e", sent(peer))
		require.Equal(t, []string{"1 acknowledged"}, s.outcomes())
	})
}

func TestASessionWithoutResumeSendsAllAgain(t *testing.T) {
	withLedger(t, ledger.Options{}, func(t *testing.T, s *ledgerScene) {
		s.open()
		peer := s.accept()
		s.add("a", "b", "c")
		require.NoError(t, s.ledger.Acked(1, 2))
		peer.Fail(errLedgerLost)
		require.Equal(t, "1:a again, 3:c again", sent(s.accept()))
	})
}

// A write that waits is withdrawn when its message is acknowledged meanwhile.
func TestNothingIsSentAfterItsAcknowledgement(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newLedgerScene(t, ledger.Options{})
		defer s.close()
		s.options.Pace = budget.Window{N: 1, Per: time.Minute}
		s.open()
		peer := s.accept()
		s.add("a", "b", "c")
		peer.Fail(errLedgerLost)
		peer = s.accept() // a is sent again at once, and b waits
		require.Equal(t, "1:a again", sent(peer))
		time.Sleep(time.Minute - time.Second)
		require.NoError(t, s.ledger.AckedTo(1, 1)) // came by the old session
		require.Equal(t, "1:a again", sent(peer))
		time.Sleep(2 * time.Second)
		require.Equal(t, "1:a again, 2:b", sent(peer))
		require.NoError(t, s.ledger.AckedTo(2, 2))
		peer.Fail(errLedgerLost)
		peer = s.accept() // c is sent at once; d waits
		s.add("d", "e")
		require.NoError(t, s.ledger.AckedTo(3, 3))
		time.Sleep(3 * time.Minute)
		require.Equal(t, "3:c, 4:d, 5:e", sent(peer))
	})
}

// The message whose write waits for the Pace is acknowledged: it was sent by the session before.
func TestAnAcknowledgementWithdrawsTheWriteThatWaits(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newLedgerScene(t, ledger.Options{})
		defer s.close()
		s.options.Pace = budget.Window{N: 2, Per: time.Minute}
		s.open()
		peer := s.accept()
		s.add("a", "b")
		peer.Fail(errLedgerLost)
		synctest.Wait()
		peer = s.accept()
		s.add("c", "d")
		require.Equal(t, "1:a again, 2:b again", sent(peer)) // c waits
		time.Sleep(2 * time.Minute)
		require.Equal(t, "1:a again, 2:b again, 3:c, 4:d", sent(peer))
		peer.Fail(errLedgerLost)
		peer = s.accept() // a and b again; c waits, and is acknowledged
		require.NoError(t, s.ledger.AckedTo(2, 3))
		time.Sleep(2 * time.Minute)
		require.Equal(t, "1:a again, 2:b again, 4:d again", sent(peer))
	})
}

func TestANumberThatWasNotSentIsAnError(t *testing.T) {
	withLedger(t, ledger.Options{}, func(t *testing.T, s *ledgerScene) {
		s.open()
		s.add("a") // is not sent yet
		require.EqualError(t, s.ledger.AckedTo(0, 1), "ledger: peer acknowledges number 1, but the last number sent is 0")
		peer := s.accept()
		s.add("b")
		var wrong *ledger.SeqError
		require.ErrorAs(t, s.ledger.Acked(1, 3), &wrong)
		require.NoError(t, s.ledger.AckedTo(1, 2))
		require.NoError(t, s.ledger.AckedTo(1, 1)) // late
		peer.Fail(errLedgerLost)
		s.resume = resumed(s.ledger, 3, true)
		s.accept()
		require.ErrorAs(t, s.conn.Status().Err, &wrong)
		require.EqualError(t, wrong, "ledger: peer acknowledges number 3, but the last number sent is 2")
		s.resume = resumed(s.ledger, 1, true)
		s.accept()
		require.ErrorContains(t, s.conn.Status().Err, "peer has numbers up to 1, but has acknowledged numbers up to 2 before")
	})
}

func TestAFullLedgerRefuses(t *testing.T) {
	withLedger(t, ledger.Options{Messages: 2, Bytes: 10}, func(t *testing.T, s *ledgerScene) {
		_, err := s.ledger.Add(make([]byte, 11))
		require.ErrorIs(t, err, ledger.ErrTooLarge)
		s.add("a", "b")
		_, err = s.ledger.Add([]byte("c"))
		require.ErrorIs(t, err, ledger.ErrFull)
		s.open()
		s.accept()
		added := make(chan uint64, 1)
		go func() {
			id, _ := s.ledger.AddWait(context.Background(), make([]byte, 10))
			added <- id
		}()
		synctest.Wait()
		require.NoError(t, s.ledger.AckedTo(1, 1))
		synctest.Wait()
		require.Empty(t, added, "there is room for a message, and not for so many bytes")
		require.NoError(t, s.ledger.AckedTo(1, 2))
		require.Equal(t, uint64(3), <-added)
	})
}

func TestAddWaitEndsWithItsContextAndWithTheConn(t *testing.T) {
	withLedger(t, ledger.Options{Messages: 1}, func(t *testing.T, s *ledgerScene) {
		s.open()
		s.add("a")
		ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
		defer cancel()
		_, err := s.ledger.AddWait(ctx, []byte("b"))
		require.ErrorIs(t, err, context.DeadlineExceeded)
		time.AfterFunc(time.Minute, func() { s.conn.Close() })
		_, err = s.ledger.AddWait(context.Background(), []byte("b"))
		require.ErrorIs(t, err, net.ErrClosed)
	})
}

// There will never be room for the message, even if the Ledger is empty.
func TestAddWaitDoesNotWaitWithAMessageThatIsTooLarge(t *testing.T) {
	withLedger(t, ledger.Options{Bytes: 3}, func(t *testing.T, s *ledgerScene) {
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		_, err := s.ledger.AddWait(ctx, []byte("four"))
		require.ErrorIs(t, err, ledger.ErrTooLarge)
	})
}

func TestAFullLedgerDropsTheOldest(t *testing.T) {
	o := ledger.Options{Messages: 3, Bytes: 6, DropOldest: true}
	withLedger(t, o, func(t *testing.T, s *ledgerScene) {
		s.add("a", "b", "c", "d")
		require.Equal(t, []string{"1 dropped"}, s.outcomes())
		s.add("12345")
		require.Equal(t, []string{"2 dropped", "3 dropped"}, s.outcomes())
		s.open()
		require.Equal(t, "4:d, 5:12345", sent(s.accept()))
	})
}

func TestAMessageExpiresAtItsAge(t *testing.T) {
	withLedger(t, ledger.Options{Age: time.Minute}, func(t *testing.T, s *ledgerScene) {
		s.open()
		s.add("a")
		time.Sleep(30 * time.Second)
		s.add("b")
		time.Sleep(30*time.Second - 1)
		require.Empty(t, s.outcomes())
		time.Sleep(time.Nanosecond)
		require.Equal(t, []string{"1 expired"}, s.outcomes())
		require.Equal(t, "2:b", sent(s.accept()))
		time.Sleep(30 * time.Second)
		require.Equal(t, []string{"2 expired"}, s.outcomes())
		require.NoError(t, s.ledger.AckedTo(1, 2), "it was sent, so it may be acknowledged late")
	})
}

// What cannot be sent does not stop the others.
func TestAMessageThatCannotBeSentIsRefused(t *testing.T) {
	withLedger(t, ledger.Options{}, func(t *testing.T, s *ledgerScene) {
		s.open()
		peer := s.accept()
		s.add("a", "bad", "c")
		require.Equal(t, "1:a, 3:c", sent(peer))
		require.Equal(t, []string{"2 refused"}, s.outcomes())
		require.EqualError(t, s.ledger.Wait(t.Context(), 2), "ledger: message 2 refused: no such message")
	})
}

func TestTheEndHandsBackWhatIsLeft(t *testing.T) {
	withLedger(t, ledger.Options{Age: time.Hour}, func(t *testing.T, s *ledgerScene) {
		s.open()
		s.accept()
		s.add("a", "b")
		waited := make(chan error, 1)
		go func() { waited <- s.ledger.Wait(context.Background(), 2) }()
		synctest.Wait()
		start := time.Now()
		s.close()
		require.Zero(t, time.Since(start), "the timer of the age is not waited for")
		require.Equal(t, []string{"1 left", "2 left"}, s.outcomes())
		var left *ledger.OutcomeError
		err := <-waited
		require.ErrorAs(t, err, &left)
		require.ErrorIs(t, err, net.ErrClosed)
		_, err = s.ledger.Add([]byte("c"))
		require.ErrorIs(t, err, net.ErrClosed)
		require.ErrorIs(t, s.ledger.AckedTo(1, 1), net.ErrClosed)
		require.ErrorIs(t, s.ledger.WaitAll(t.Context()), net.ErrClosed)
	})
}

func TestALedgerServesOneConn(t *testing.T) {
	withLedger(t, ledger.Options{}, func(t *testing.T, s *ledgerScene) {
		s.open()
		_, err := reconnect.New(reconnect.DialFunc(s.dial), &reconnect.Options{Layers: []*reconnect.Layer{s.ledger.Layer()}})
		require.ErrorContains(t, err, "serves one Conn")
	})
}

// picky is a connection that refuses the message "1:a" for good.
type picky struct{ conn.Conn }

func (c picky) Write(m conn.Message) error {
	if string(m.Data) == "1:a" {
		return conn.ErrBadMessage
	}
	return c.Conn.Write(m)
}

func TestAMessageThatTheConnectionRefusesIsRefused(t *testing.T) {
	withLedger(t, ledger.Options{}, func(t *testing.T, s *ledgerScene) {
		s.open()
		peer := conntest.NewFake(nil)
		s.answer(picky{peer.Conn()})
		s.add("a", "b")
		require.Equal(t, "2:b", sent(peer))
		require.Equal(t, []string{"1 refused"}, s.outcomes())
		require.ErrorIs(t, s.ledger.Wait(t.Context(), 1), conn.ErrBadMessage)
	})
}

// Both ends count, and the connection refuses a message. The peer gets the last one twice, and misses
// none.
func TestARefusedMessageThatThePeerCannotCountLosesNoOther(t *testing.T) {
	withLedger(t, ledger.Options{Encode: plainEntry}, func(t *testing.T, s *ledgerScene) {
		s.open()
		peer := conntest.NewFake(nil)
		s.answer(picky{peer.Conn()})
		s.add("x", "1:a", "b", "c")
		require.Equal(t, "x, b, c", sent(peer))
		require.NoError(t, s.ledger.AckedTo(1, 3))
		peer.Fail(errLedgerLost)
		s.resume = resumed(s.ledger, 3, true)
		peer = s.accept()
		s.add("d")
		require.Equal(t, "c, d", sent(peer))
		require.NoError(t, s.ledger.AckedTo(2, 5))
		require.Equal(t, []string{"2 refused", "1 acknowledged", "3 acknowledged", "4 acknowledged", "5 acknowledged"}, s.outcomes())
	})
}

// A message whose write was cut is sent again, since nobody knows whether it has arrived.
func TestAMessageOfUnknownFateIsSentAgain(t *testing.T) {
	for name, err := range map[string]error{"not written": conn.ErrNotWritten, "unknown": errLedgerLost} {
		t.Run(name, func(t *testing.T) {
			withLedger(t, ledger.Options{}, func(t *testing.T, s *ledgerScene) {
				s.open()
				peer := s.accept()
				peer.FailWriteAfter(1, err)
				s.add("a", "b")
				want := "1:a again, 2:b"
				if !errors.Is(err, conn.ErrNotWritten) {
					want += " again"
				}
				require.Equal(t, want, sent(s.accept()))
			})
		})
	}
}

func TestBadOptionsAreNamed(t *testing.T) {
	for want, o := range map[string]ledger.Options{
		"ledger: Options.Messages: -3 is negative":                                   {Messages: -3},
		"ledger: Options.Bytes: -1 is negative":                                      {Bytes: -1},
		"ledger: Options.OnReset: 3 is not one of the Reset constants":               {OnReset: 3},
		"ledger: Options.OnStoreError needs a Store: without one it is never called": {OnStoreError: func(error) {}},
	} {
		_, err := ledger.New(&o)
		require.EqualError(t, err, want)
	}
	for _, o := range []ledger.Options{{Age: time.Hour}, {DropOldest: true}, {OnReset: ledger.ResetKeepNumbers}} {
		_, err := ledger.New(&o)
		require.EqualError(t, err, "ledger: Options.Encode is missing: Age, DropOldest and ResetKeepNumbers need an Encode that sends the number of each message")
		o.Encode = encodeEntry
		_, err = ledger.New(&o)
		require.NoError(t, err)
	}
	_, err := ledger.New(nil)
	require.NoError(t, err)
}

// The defaults are 1024 messages, 16 MiB, and no limit on the age.
func TestTheUsualLimits(t *testing.T) {
	withLedger(t, ledger.Options{Age: -1}, func(t *testing.T, s *ledgerScene) {
		s.open()
		for range 1024 {
			s.add("")
		}
		_, err := s.ledger.Add(nil)
		require.ErrorIs(t, err, ledger.ErrFull)
		time.Sleep(1000 * time.Hour)
		require.Len(t, s.ledger.Unacked(), 1024)
	})
	l, err := ledger.New(nil)
	require.NoError(t, err)
	_, err = l.Add(make([]byte, 16<<20+1))
	require.ErrorIs(t, err, ledger.ErrTooLarge)
	_, err = l.Add(make([]byte, 16<<20))
	require.NoError(t, err)
}
