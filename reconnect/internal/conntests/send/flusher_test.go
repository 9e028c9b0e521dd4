package send_test

import (
	"context"
	"errors"
	"fmt"
	"net"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/redial-go/redial/conn"
	"github.com/redial-go/redial/conn/conntest"
	"github.com/redial-go/redial/reconnect"
	"github.com/redial-go/redial/reconnect/internal/conntests/scene"
)

// openHeld opens a Conn whose connections write batches, and holds the first write back: that
// of "first".
func openHeld(
	t *testing.T, s *scene.Scene, down reconnect.WhenDown,
) (*reconnect.Conn, *conntest.Fake, *scene.ReceiptLog) {
	s.Fake.Transport = true
	o, receipts := scene.Sending(down)
	c := s.Open(o)
	peer := s.WantDial().Accept()
	peer.Hold()
	scene.Queue(t, c, "first")
	s.WantNoDial()
	return c, peer, receipts
}

// What was queued while a message was being written goes as a batch, of at most 64 messages.
func TestWhatIsQueuedIsWrittenInBatches(t *testing.T) {
	scene.InBubble(t, func(t *testing.T, s *scene.Scene) {
		c, peer, receipts := openHeld(t, s, reconnect.WhenDownFail)
		want := []string{"first"}
		for i := range 100 {
			want = append(want, fmt.Sprint(i))
		}
		scene.Queue(t, c, want[1:]...)
		peer.Release()
		require.Equal(t, strings.Join(want, " "), scene.Written(peer))
		require.Equal(t, []int{64, 36}, peer.Batches())
		require.Len(t, receipts.All(), 101)
		require.Equal(t, uint64(101), c.Stats().Written)
	})
}

// The frames of a batch take 32 KiB at most, so that the kernel gets them at once, one write
// timeout holds for them, and no message begins after its deadline. A larger message goes alone.
func TestABatchIsAsLargeAsOneWrite(t *testing.T) {
	for _, c := range []struct {
		sizes   []int
		batches []int // without the messages that go alone
	}{
		{slices.Repeat([]int{10 << 10}, 7), []int{3, 3}},
		{slices.Repeat([]int{16<<10 - 14}, 4), []int{2, 2}},
		{slices.Repeat([]int{16<<10 - 13}, 4), nil},
		{[]int{1, 40 << 10, 1}, nil},
	} {
		scene.InBubble(t, func(t *testing.T, s *scene.Scene) {
			o, peer, _ := openHeld(t, s, reconnect.WhenDownFail)
			for _, size := range c.sizes {
				scene.Queue(t, o, strings.Repeat("x", size))
			}
			peer.Release()
			require.Len(t, strings.Fields(scene.Written(peer)), 1+len(c.sizes))
			require.Equal(t, c.batches, peer.Batches())
		})
	}
}

// Promise 6: each message of a batch that fails has its own fate.
func TestEachMessageOfAFailedBatchHasItsFate(t *testing.T) {
	errReset := errors.New("reset")
	notWritten := fmt.Errorf("%w: %w", conn.ErrNotWritten, errReset)
	// The error, and which fate it gives to each message of the batch.
	for name, c := range map[string]struct {
		down     reconnect.WhenDown
		err      error
		receipts []string
		next     string // what the next session writes
	}{
		"kept":          {reconnect.WhenDownKeep, errReset, []string{"first: written 1", "a: written 1", "b: unknown 1", "c: written 2", "d: written 2"}, "c d"},
		"kept, unbegun": {reconnect.WhenDownKeep, notWritten, []string{"first: written 1", "a: written 1", "b: written 2", "c: written 2", "d: written 2"}, "b c d"},
		"not kept":      {reconnect.WhenDownFail, errReset, []string{"first: written 1", "a: written 1", "b: unknown 1", "c: dropped 1", "d: dropped 1"}, ""},
	} {
		t.Run(name, func(t *testing.T) {
			scene.InBubble(t, func(t *testing.T, s *scene.Scene) {
				// The batch is written up to its second message.
				o, peer, receipts := openHeld(t, s, c.down)
				scene.Queue(t, o, "a", "b", "c", "d")
				peer.FailWriteAfter(2, c.err)
				peer.Release()
				require.Equal(t, "first a", scene.Written(peer))
				// The next session writes what is left.
				next := s.WantDial().Accept()
				require.Equal(t, c.next, scene.Written(next))
				// A message that was dropped was never begun.
				receipts.Want(t, c.receipts...)
				for _, r := range receipts.All() {
					require.Equal(t, r.Fate == reconnect.FateDropped, r.Began.IsZero(), "%s", r.Outgoing.Data)
				}
			})
		})
	}
}

// If the connection refuses one message of a batch, only that message is dropped, and the ones
// behind it keep their order.
func TestARefusedMessageLeavesItsBatchBehind(t *testing.T) {
	scene.WithWSServer(t, nil, func(t *testing.T, server *scene.WSServer) {
		o, receipts := scene.Sending(reconnect.WhenDownKeep)
		c := server.Open(t, o)
		for _, m := range []conn.Message{
			scene.Text("a"), {Data: []byte("bad"), Type: 7}, scene.Text("b"), scene.Text("c"),
		} {
			require.NoError(t, c.Send(reconnect.Outgoing{Message: m}))
		}
		require.NoError(t, c.Await(t.Context(), reconnect.StateReady))
		receipts.Want(t, "a: written 1", "bad: dropped 1", "b: written 1", "c: written 1")
		require.ErrorIs(t, receipts.All()[1].Err, conn.ErrBadMessage)
	})
}

// Promise 6: the fate of the message that was being written is unknown, and it is never sent
// again. The rest of the queue is kept.
func TestALostSessionLeavesItsQueueToTheNext(t *testing.T) {
	scene.InBubble(t, func(t *testing.T, s *scene.Scene) {
		o, receipts := scene.Sending(reconnect.WhenDownKeep)
		c := s.Open(o)
		scene.SendAndLose(t, c, s.WantDial().Accept(), scene.Out("a"), scene.Out("b"), scene.Out("c"))
		receipts.Want(t, "a: unknown 1")
		now := time.Now()
		want := reconnect.Receipt{
			Outgoing: scene.Out("a"), Fate: reconnect.FateUnknown, Session: 1, Tries: 1,
			Began: now, Ended: now, Err: receipts.Last(t).Err,
		}
		require.Equal(t, want, receipts.Last(t))
		require.ErrorIs(t, receipts.Last(t).Err, scene.ErrLost)
		scene.Queue(t, c, "d")
		require.Equal(t, "b c d", scene.Written(s.WantDial().Accept()))
		receipts.Want(t, "a: unknown 1", "b: written 2", "c: written 2", "d: written 2")
		require.Equal(t, 1, receipts.Last(t).Tries)
	})
}

// Promise 6, for a program that does not ask: a is unknown, b is kept and written, c comes too late.
func TestFatesAreCountedWithoutOnReceipt(t *testing.T) {
	scene.InBubble(t, func(t *testing.T, s *scene.Scene) {
		o := scene.WithPolicy(scene.Every(time.Second))
		o.WhenDown = reconnect.WhenDownKeep
		o.OnSession = func(_ context.Context, op *reconnect.Opening) error { return op.AwaitReceipts() }
		c := s.Open(&o)
		late := scene.Out("c")
		late.Deadline = time.Now().Add(time.Millisecond)
		scene.SendAndLose(t, c, s.WantDial().Accept(), scene.Out("a"), scene.Out("b"), late)
		require.Equal(t, "b", scene.Written(s.WantDial().Accept()))
		stats := c.Stats()
		require.Equal(t, []uint64{1, 1, 1, 0}, []uint64{stats.Written, stats.Unknown, stats.Dropped, stats.Queued})
	})
}

// Promise 6: without WhenDownKeep the queue is only for the session that was ready when a
// message came.
func TestALostSessionsQueueIsDroppedUnlessMessagesAreKept(t *testing.T) {
	for _, down := range []reconnect.WhenDown{reconnect.WhenDownFail, reconnect.WhenDownWait} {
		scene.InBubble(t, func(t *testing.T, s *scene.Scene) {
			o, receipts := scene.Sending(down)
			c := s.Open(o)
			scene.SendAndLose(t, c, s.WantDial().Accept(), scene.Repeatable("a"), scene.Out("b"), scene.Repeatable("c"))
			receipts.Want(t, "a: unknown 1", "b: dropped 0", "c: dropped 0")
			require.ErrorIs(t, receipts.Last(t).Err, reconnect.ErrSessionLost)
			require.Regexp(t, "^its session was lost: (read|write): lost$", receipts.Last(t).Err.Error())
			require.Empty(t, scene.Written(s.WantDial().Accept()))
		})
	}
}

// Promise 6: Keep can keep a subscription and drop an order.
func TestKeepHandsBackWhatItDoesNotWant(t *testing.T) {
	scene.InBubble(t, func(t *testing.T, s *scene.Scene) {
		o, receipts := scene.Sending(reconnect.WhenDownKeep)
		var asked scene.Notes
		o.Outbox.Keep = func(_ context.Context, m reconnect.Outgoing, cause error) bool {
			asked.Add(string(m.Data))
			require.ErrorIs(t, cause, scene.ErrLost)
			return m.Key == "subscription"
		}
		c := s.Open(o)
		scene.SendAndLose(t, c, s.WantDial().Accept(),
			scene.Out("a"), keyed("order", "b"), keyed("subscription", "c"), keyed("order", "d"))
		require.Equal(t, []string{"b", "c", "d"}, asked.All())
		receipts.Want(t, "a: unknown 1", "b: dropped 0", "d: dropped 0")
		require.Equal(t, keyed("order", "d"), receipts.Last(t).Outgoing)
		require.ErrorIs(t, receipts.Last(t).Err, reconnect.ErrSessionLost)
		require.Equal(t, "c", scene.Written(s.WantDial().Accept()))
	})
}

// Neither a session that was never ready nor a failed dial leaves messages behind.
func TestKeepIsAskedOnlyWhenAReadySessionIsLost(t *testing.T) {
	scene.InBubble(t, func(t *testing.T, s *scene.Scene) {
		o, _ := scene.Sending(reconnect.WhenDownKeep)
		o.OnSession = refuseFirst
		o.Outbox.Keep = func(context.Context, reconnect.Outgoing, error) bool { t.Error("asked"); return false }
		c := s.Open(o)
		scene.Queue(t, c, "a")
		s.WantDial().Refuse(scene.ErrLost)
		s.WantDial().Accept()
		require.Equal(t, "a", scene.Written(s.WantDial().Accept()))
	})
}

// After a message is dropped its data belongs to the caller again, so Keep must not see it.
func TestKeepIsNotAskedAboutWhatIsDroppedAlready(t *testing.T) {
	scene.InBubble(t, func(t *testing.T, s *scene.Scene) {
		o, receipts := scene.Sending(reconnect.WhenDownKeep)
		var asked scene.Notes
		o.Outbox.Keep = func(_ context.Context, m reconnect.Outgoing, _ error) bool {
			asked.Add(string(m.Data))
			time.Sleep(time.Second)
			return true
		}
		c := s.Open(o)
		late := scene.Out("c")
		late.Deadline = s.Start().Add(time.Second / 2)
		scene.SendAndLose(t, c, s.WantDial().Accept(), scene.Out("a"), scene.Out("b"), late, scene.Out("d"))
		time.Sleep(2 * time.Second)
		receipts.Want(t, "a: unknown 1", "c: dropped 0")
		require.Equal(t, []string{"b", "d"}, asked.All())
		require.Equal(t, "b d", scene.Written(s.WantDial().Accept()))
	})
}

// Promise 6: each message has one receipt, though Keep takes its time.
func TestKeepMayDecideTooLate(t *testing.T) {
	scene.InBubble(t, func(t *testing.T, s *scene.Scene) {
		o, receipts := scene.Sending(reconnect.WhenDownKeep)
		o.Outbox.Keep = func(context.Context, reconnect.Outgoing, error) bool { time.Sleep(time.Second); return false }
		c := s.Open(o)
		late := scene.Out("b")
		late.Deadline = s.Start().Add(time.Second / 2)
		scene.SendAndLose(t, c, s.WantDial().Accept(), scene.Out("a"), late, scene.Out("c"))
		time.Sleep(2 * time.Second)
		receipts.Want(t, "a: unknown 1", "b: dropped 0", "c: dropped 0")
		require.ErrorIs(t, receipts.All()[1].Err, reconnect.ErrExpired)
		require.ErrorIs(t, receipts.Last(t).Err, reconnect.ErrSessionLost)
	})
}

// Keep is not asked about a message that was accepted after the loss, though one that it was to
// be asked about has expired meanwhile, and its memory is free.
func TestKeepIsNotAskedAboutWhatCameLater(t *testing.T) {
	scene.InBubble(t, func(t *testing.T, s *scene.Scene) {
		o, receipts := scene.Sending(reconnect.WhenDownKeep)
		var asked scene.Notes
		var c *reconnect.Conn
		o.Outbox.Keep = func(_ context.Context, m reconnect.Outgoing, _ error) bool {
			asked.Add(string(m.Data))
			if string(m.Data) == "b" {
				time.Sleep(time.Second)
				scene.Queue(t, c, "new", "newer")
			}
			return false
		}
		c = s.Open(o)
		late := scene.Out("late")
		late.Deadline = s.Start().Add(time.Second / 2)
		scene.SendAndLose(t, c, s.WantDial().Accept(), scene.Out("a"), scene.Out("b"), late)
		time.Sleep(2 * time.Second)
		require.Equal(t, []string{"b"}, asked.All())
		receipts.Want(t, "a: unknown 1", "late: dropped 0", "b: dropped 0")
		require.Equal(t, "new newer", scene.Written(s.WantDial().Accept()))
	})
}

// Promises 11 and 14.
func TestKeepMayCloseTheConn(t *testing.T) {
	scene.InBubble(t, func(t *testing.T, s *scene.Scene) {
		o, receipts := scene.Sending(reconnect.WhenDownKeep)
		var c *reconnect.Conn
		var asked scene.Notes
		o.Outbox.Keep = func(_ context.Context, m reconnect.Outgoing, _ error) bool {
			asked.Add(string(m.Data))
			c.Close()
			require.ErrorIs(t, c.Write(context.Background(), scene.Text("w")), net.ErrClosed)
			return true
		}
		c = s.Open(o)
		scene.SendAndLose(t, c, s.WantDial().Accept(), scene.Out("a"), scene.Out("b"), scene.Out("c"))
		<-c.Done()
		require.Equal(t, []string{"b"}, asked.All())
		receipts.Want(t, "a: unknown 1", "b: dropped 0", "c: dropped 0")
		require.ErrorIs(t, receipts.Last(t).Err, net.ErrClosed)
		require.Zero(t, s.Now())
	})
}

// Promise 14: no lock is held while Keep decides.
func TestKeepMaySend(t *testing.T) {
	scene.InBubble(t, func(t *testing.T, s *scene.Scene) {
		o, _ := scene.Sending(reconnect.WhenDownKeep)
		var c *reconnect.Conn
		o.Outbox.Keep = func(_ context.Context, m reconnect.Outgoing, _ error) bool {
			return c.Send(scene.Out("instead of "+string(m.Data))) != nil
		}
		c = s.Open(o)
		scene.SendAndLose(t, c, s.WantDial().Accept(), scene.Out("a"), scene.Out("b"))
		require.Equal(t, "instead of b", scene.Written(s.WantDial().Accept()))
	})
}

// Promise 6: only a message that is marked Repeatable is sent again.
func TestARepeatableMessageIsSentAgain(t *testing.T) {
	scene.InBubble(t, func(t *testing.T, s *scene.Scene) {
		o, receipts := scene.Sending(reconnect.WhenDownKeep)
		c := s.Open(o)
		scene.SendAndLose(t, c, s.WantDial().Accept(), scene.Repeatable("a"), scene.Out("b"))
		receipts.Want(t)
		require.Equal(t, "a b", scene.Written(s.WantDial().Accept()), "at the head of the queue")
		receipts.Want(t, "a: written 2", "b: written 2")
		require.Equal(t, 2, receipts.All()[0].Tries)
		require.Equal(t, 1, receipts.All()[1].Tries)
	})
}

// Promise 6: a message that may have arrived is not reported as dropped, whatever ends it.
func TestTheFateOfARepeatableMessageThatIsGivenUpIsUnknown(t *testing.T) {
	// What ends the message after its first try, and the error of its receipt.
	for name, end := range map[string]func(o *reconnect.Options) (m reconnect.Outgoing, cause error){
		"its deadline": func(*reconnect.Options) (reconnect.Outgoing, error) {
			m := scene.Repeatable("a")
			m.Deadline = time.Now().Add(time.Second)
			return m, reconnect.ErrExpired
		},
		"Keep": func(o *reconnect.Options) (reconnect.Outgoing, error) {
			o.Outbox.Keep = func(context.Context, reconnect.Outgoing, error) bool { return false }
			return scene.Repeatable("a"), reconnect.ErrSessionLost
		},
		"its session": func(*reconnect.Options) (reconnect.Outgoing, error) {
			return reconnect.Outgoing{Message: scene.Text("a"), Repeatable: true, Session: 1}, reconnect.ErrSessionLost
		},
	} {
		t.Run(name, func(t *testing.T) {
			scene.InBubble(t, func(t *testing.T, s *scene.Scene) {
				// The session is lost while the message is being written.
				o, receipts := scene.Sending(reconnect.WhenDownKeep)
				m, cause := end(o)
				c := s.Open(o)
				scene.SendAndLose(t, c, s.WantDial().Accept(), m)
				// Before the next session the message is given up.
				s.WantDial() // after a second
				receipts.Want(t, "a: unknown 1")
				require.ErrorIs(t, receipts.Last(t).Err, cause)
				require.Equal(t, uint64(1), c.Stats().Unknown)
			})
		})
	}
}

// Promise 6: a second try that did not begin does not settle what became of the first, nor when that was.
func TestADoubtOutlivesATryThatWasNotBegun(t *testing.T) {
	scene.InBubble(t, func(t *testing.T, s *scene.Scene) {
		o, receipts := scene.Sending(reconnect.WhenDownKeep)
		c := s.Open(o)
		m := scene.Repeatable("a")
		m.Deadline = s.Start().Add(3 * time.Second / 2)
		scene.SendAndLose(t, c, s.WantDial().Accept(), m)
		s.WantDial().AcceptHeld().FailWrite(scene.ErrNotBegun)
		s.WantDial() // after two seconds
		receipts.Want(t, "a: unknown 2")
		r := receipts.Last(t)
		require.Equal(t, 1, r.Tries)
		require.Equal(t, []time.Time{s.Start(), s.Start()}, []time.Time{r.Began, r.Ended}, "the first write")
	})
}

// Promise 6: a message whose write did not begin goes back to the head of the queue, and the
// try does not count.
func TestWhatWasNotBegunGoesBackToTheHead(t *testing.T) {
	scene.InBubble(t, func(t *testing.T, s *scene.Scene) {
		o, receipts := scene.Sending(reconnect.WhenDownKeep)
		c := s.Open(o)
		peer := s.WantDial().Accept()
		peer.FailWrite(scene.ErrNotBegun)
		scene.Queue(t, c, "a", "b")
		next := s.WantDial().Accept()
		require.Equal(t, "a b", scene.Written(next))
		receipts.Want(t, "a: written 2", "b: written 2")
		require.Equal(t, 1, receipts.All()[0].Tries)
	})
}

func TestWhatWasNotBegunIsDroppedUnlessMessagesAreKept(t *testing.T) {
	scene.InBubble(t, func(t *testing.T, s *scene.Scene) {
		o, receipts := scene.Sending(reconnect.WhenDownFail)
		c := s.Open(o)
		s.WantDial().Accept().FailWrite(scene.ErrNotBegun)
		scene.Queue(t, c, "a")
		receipts.Want(t, "a: dropped 1")
		require.Zero(t, receipts.Last(t).Tries)
		require.ErrorIs(t, receipts.Last(t).Err, reconnect.ErrSessionLost)
	})
}

// Promise 6: the error of a receipt names the cause of the loss, but errors.Is does not find
// net.ErrClosed in it, because the Conn is not closed.
func TestALostSessionIsNotTakenForAClosedConn(t *testing.T) {
	scene.InBubble(t, func(t *testing.T, s *scene.Scene) {
		o, receipts := scene.Sending(reconnect.WhenDownWait)
		c := s.Open(o)
		peer := s.WantDial().Accept()
		peer.Hold()
		scene.Queue(t, c, "a", "b")
		synctest.Wait()
		peer.CloseNow()
		receipts.Want(t, "a: unknown 1", "b: dropped 0")
		require.NotErrorIs(t, receipts.Last(t).Err, net.ErrClosed, "though that was the cause")
		require.ErrorIs(t, receipts.Last(t).Err, reconnect.ErrSessionLost)
	})
}

// Promise 11: Close does not wait for a write.
func TestCloseDuringAFlushCutsAtOnce(t *testing.T) {
	scene.InBubble(t, func(t *testing.T, s *scene.Scene) {
		o, receipts := scene.Sending(reconnect.WhenDownKeep)
		c := s.Open(o)
		scene.Queue(t, c, "a", "b")
		s.WantDial().AcceptHeld()
		scene.CloseAndWait(c)
		require.Zero(t, s.Now())
		receipts.Want(t, "a: unknown 1", "b: dropped 0")
		require.ErrorIs(t, receipts.All()[0].Err, net.ErrClosed)
		require.ErrorIs(t, receipts.Last(t).Err, net.ErrClosed)
	})
}

// Promise 6: wherever the connection is cut, the next one begins with a whole message, and no
// message is on both.
func TestAMessageIsNeverSplitOverTwoConnections(t *testing.T) {
	for cut := int64(1); cut < 200_100; cut = cut*3/2 + 1 { // in headers, in the first message, between the two, in the second
		seen := new(scene.MessageLog)
		scene.WithWSServer(t, seen.Serve, func(t *testing.T, server *scene.WSServer) {
			// Send three messages by a connection that ends after so many bytes.
			o, receipts := scene.Sending(reconnect.WhenDownKeep)
			c := server.Ready(t, o)
			server.Pipe(t).Cut(conntest.ToServer, cut)
			for _, name := range []string{"1", "2", "3"} {
				require.NoError(t, c.Send(reconnect.Outgoing{Message: scene.Named(name, 100_000), Tag: name}))
			}
			time.Sleep(time.Second)
			// The second connection brings whole messages only.
			arrived := make(map[string]int)
			lines := seen.All()
			require.Len(t, lines, 2)
			for _, line := range lines[1] {
				require.True(t, strings.HasSuffix(line, " x 100000"), "cut at %d: %v", cut, lines)
			}
			// No message arrives twice, and a receipt of session 2 is true.
			for _, line := range append(lines[0], lines[1]...) {
				if name, whole := strings.CutSuffix(line, " x 100000"); whole {
					arrived[name]++
				}
			}
			require.Len(t, receipts.All(), 3)
			for _, r := range receipts.All() {
				name := r.Outgoing.Tag.(string)
				require.LessOrEqual(t, arrived[name], 1, "cut at %d: %v", cut, lines)
				require.Equal(t, r.Session == 2, r.Fate == reconnect.FateWritten && arrived[name] == 1 && contains(lines[1], name), "cut at %d: %s %v of session %d: %v", cut, name, r.Fate, r.Session, lines)
			}
		})
	}
}

func contains(lines []string, name string) bool {
	for _, line := range lines {
		if strings.HasPrefix(line, name+" ") {
			return true
		}
	}
	return false
}

// sloppy is a Transport that writes all messages of a batch, and returns an error although none of
// them has failed.
type sloppy struct {
	conn.Conn
	conn.Transport
}

func (s sloppy) WriteBatch(ms []conn.Message) (int, error) {
	n, _ := s.Transport.WriteBatch(ms)
	return n, conn.ErrBadMessage
}

// The next session does not write what was written.
func TestSloppyTransportEndsSession(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		o, receipts := scene.Sending(reconnect.WhenDownKeep)
		peer := conntest.NewFake(&conntest.FakeOptions{Transport: true})
		peer.Hold()
		var dials atomic.Int32
		c, err := reconnect.New(reconnect.DialFunc(func(context.Context) (conn.Conn, error) {
			if dials.Add(1) > 1 {
				return nil, scene.ErrLost
			}
			return sloppy{peer.Conn(), peer.Conn().(conn.Transport)}, nil
		}), o)
		require.NoError(t, err)
		scene.Queue(t, c, "a")
		synctest.Wait() // it is being written
		scene.Queue(t, c, "b", "c", "d")
		peer.Release()
		synctest.Wait()
		receipts.Want(t, "a: written 1", "b: written 1", "c: written 1", "d: written 1")
		require.Equal(t, []string{"a", "b", "c", "d"}, scene.Texts(peer))
		require.ErrorContains(t, c.Status().Err,
			"WriteBatch of send_test.sloppy returned n = 3 for 3 messages and the error bad message")
		scene.CloseAndWait(c)
	})
}
