package reconnect_test

import (
	"context"
	"net"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/redial-go/redial/conn"
	"github.com/redial-go/redial/reconnect"
)

// Promise 10: by count, those that are being written excepted.
func TestTheOutboxIsBoundedByCount(t *testing.T) {
	inBubble(t, func(t *testing.T, s *scene) {
		o, told := sending(reconnect.WhenDownKeep)
		o.Outbox.Messages = 2
		c := s.open(o)
		peer := s.wantDial().accept()
		peer.Hold()
		queue(t, c, "a")
		synctest.Wait()
		queue(t, c, "b", "c")
		err := c.Send(reconnect.Out{Message: text("d")})
		wantFate(t, err, reconnect.FateDropped, 0)
		require.ErrorIs(t, err, reconnect.ErrOutboxFull)
		require.ErrorContains(t, err, "2 messages of 2 bytes wait")
		peer.Release()
		told.want(t, "a: written 1", "b: written 1", "c: written 1")
		queue(t, c, "e")
	})
}

// Promise 10.
func TestTheOutboxIsBoundedByBytes(t *testing.T) {
	inBubble(t, func(t *testing.T, s *scene) {
		o, _ := sending(reconnect.WhenDownKeep)
		o.Outbox.Bytes = 5
		c := s.open(o)
		require.ErrorContains(t, c.Send(reconnect.Out{Message: text("123456")}), "a message of 6 bytes is larger than the limit of 5")
		queue(t, c, "12", "345")
		require.ErrorIs(t, c.Send(reconnect.Out{Message: text("6")}), reconnect.ErrOutboxFull)
		require.Equal(t, "12 345", written(s.wantDial().accept()))
		queue(t, c, "67890")
	})
}

// Promise 10: at the defaults.
func TestAnOutboxHoldsSixteenMebibytesOr1024Messages(t *testing.T) {
	inBubble(t, func(t *testing.T, s *scene) {
		o, _ := sending(reconnect.WhenDownKeep)
		c := s.open(o)
		for range 1024 {
			queue(t, c, "")
		}
		require.ErrorIs(t, c.Send(reconnect.Out{}), reconnect.ErrOutboxFull)
		s.wantDial().accept()
		require.Zero(t, c.Stats().Queued)
		require.Error(t, c.Send(reconnect.Out{Message: text(strings.Repeat("x", 16<<20+1))}))
		queue(t, c, strings.Repeat("x", 16<<20))
	})
}

// Promise 10: what a Write queues needs no room, and takes none.
func TestAQueuedWriteIsNotCounted(t *testing.T) {
	inBubble(t, func(t *testing.T, s *scene) {
		o, told := sending(reconnect.WhenDownKeep)
		o.Outbox.Messages, o.Outbox.Overflow = 1, reconnect.OverflowDropOldest
		c := s.open(o)
		wrote := make(chan error, 1)
		go func() { wrote <- c.Write(t.Context(), text("w")) }()
		synctest.Wait()
		queue(t, c, "a", "b")
		require.Equal(t, "w b", written(s.wantDial().accept()))
		require.NoError(t, <-wrote)
		told.want(t, "a: dropped 0", "b: written 1")
	})
}

func TestTheOldestAreDisplaced(t *testing.T) {
	inBubble(t, func(t *testing.T, s *scene) {
		o, told := sending(reconnect.WhenDownKeep)
		o.Outbox.Messages, o.Outbox.Bytes, o.Outbox.Overflow = 3, 6, reconnect.OverflowDropOldest
		c := s.open(o)
		queue(t, c, "1", "2", "3", "4")
		told.want(t, "1: dropped 0")
		queue(t, c, "5555")
		told.want(t, "1: dropped 0", "2: dropped 0")
		require.ErrorIs(t, told.last(t).Err, reconnect.ErrOutboxFull)
		require.ErrorIs(t, c.Send(reconnect.Out{Message: text("1234567")}), reconnect.ErrOutboxFull, "no sacrifice makes room for it")
		require.Equal(t, "3 4 5555", written(s.wantDial().accept()))
	})
}

// keyed is a message about a key.
func keyed(key, data string) reconnect.Out { return reconnect.Out{Message: text(data), Key: key} }

func TestAMessageReplacesTheOneWithItsKey(t *testing.T) {
	inBubble(t, func(t *testing.T, s *scene) {
		o, told := sending(reconnect.WhenDownKeep)
		o.Outbox.Messages, o.Outbox.Bytes, o.Outbox.Overflow = 2, 4, reconnect.OverflowReplaceKey
		c := s.open(o)
		require.NoError(t, c.Send(keyed("x", "x1")))
		require.NoError(t, c.Send(keyed("y", "y1")))
		require.NoError(t, c.Send(keyed("x", "x2")), "full, but for its own key")
		told.want(t, "x1: dropped 0")
		require.ErrorIs(t, told.last(t).Err, reconnect.ErrReplaced)
		for _, refused := range []reconnect.Out{keyed("z", "z"), keyed("x", "x33"), keyed("", "-")} {
			require.ErrorIs(t, c.Send(refused), reconnect.ErrOutboxFull)
		}
		told.want(t, "x1: dropped 0")
		require.Equal(t, "y1 x2", written(s.wantDial().accept()), "at the end of the queue")
	})
}

// Not full either: the older one is of no use any more. Without a key nothing is replaced.
func TestAMessageReplacesTheOneWithItsKeyThoughThereIsRoom(t *testing.T) {
	inBubble(t, func(t *testing.T, s *scene) {
		o, told := sending(reconnect.WhenDownKeep)
		o.Outbox.Overflow = reconnect.OverflowReplaceKey
		c := s.open(o)
		for _, m := range []reconnect.Out{keyed("x", "x1"), keyed("", "1"), keyed("", "2"), keyed("x", "x2"), keyed("x", "x3")} {
			require.NoError(t, c.Send(m))
		}
		told.want(t, "x1: dropped 0", "x2: dropped 0")
		require.Equal(t, "1 2 x3", written(s.wantDial().accept()))
	})
}

func TestAKeyMeansNothingToTheOtherPolicies(t *testing.T) {
	inBubble(t, func(t *testing.T, s *scene) {
		o, _ := sending(reconnect.WhenDownKeep)
		c := s.open(o)
		require.NoError(t, c.Send(keyed("x", "x1")))
		require.NoError(t, c.Send(keyed("x", "x2")))
		require.Equal(t, "x1 x2", written(s.wantDial().accept()))
	})
}

// Promise 6: what is being written is not replaced any more, but what comes back is
// found by its key.
func TestTheMessageThatIsBeingWrittenIsNotReplaced(t *testing.T) {
	inBubble(t, func(t *testing.T, s *scene) {
		o, told := sending(reconnect.WhenDownKeep)
		o.Outbox.Overflow = reconnect.OverflowReplaceKey
		c := s.open(o)
		peer := s.wantDial().accept()
		peer.Hold()
		again := keyed("x", "x1")
		again.Repeatable = true
		require.NoError(t, c.Send(again))
		synctest.Wait()
		peer.Fail(errLost)
		synctest.Wait()
		require.NoError(t, c.Send(keyed("x", "x2")))
		told.want(t, "x1: unknown 1")
		require.ErrorIs(t, told.last(t).Err, reconnect.ErrReplaced)
		next := s.wantDial().accept()
		next.Hold()
		require.NoError(t, c.Send(keyed("x", "x3")))
		synctest.Wait()
		require.NoError(t, c.Send(keyed("x", "x4")))
		next.Release()
		require.Equal(t, "x2 x3 x4", written(next))
	})
}

// Not even if it could be sent again.
func TestAMessageThatComesBackGivesWayToANewerOneWithItsKey(t *testing.T) {
	inBubble(t, func(t *testing.T, s *scene) {
		o, told := sending(reconnect.WhenDownKeep)
		o.Outbox.Overflow = reconnect.OverflowReplaceKey
		c := s.open(o)
		peer := s.wantDial().accept()
		peer.Hold()
		again := keyed("x", "x1")
		again.Repeatable = true
		require.NoError(t, c.Send(again))
		synctest.Wait()
		require.NoError(t, c.Send(keyed("x", "x2")))
		peer.Fail(errLost)
		told.want(t, "x1: unknown 1")
		require.ErrorIs(t, told.last(t).Err, reconnect.ErrReplaced)
		require.Equal(t, "x2", written(s.wantDial().accept()))
	})
}

// Promises 6 and 10: at the very instant, whatever is before it in the queue.
func TestAMessageIsDroppedWhenItIsTooLate(t *testing.T) {
	inBubble(t, func(t *testing.T, s *scene) {
		o, told := sending(reconnect.WhenDownKeep)
		c := s.open(o)
		s.wantDial()
		for _, m := range []struct {
			data string
			at   time.Duration
		}{{"b", 2 * time.Second}, {"a", time.Second}, {"c", 3 * time.Second}, {"d", time.Hour}} {
			require.NoError(t, c.Send(reconnect.Out{Message: text(m.data), Deadline: s.start.Add(m.at)}))
		}
		time.Sleep(time.Second - 1)
		told.want(t)
		time.Sleep(time.Nanosecond)
		told.want(t, "a: dropped 0")
		require.ErrorIs(t, told.last(t).Err, reconnect.ErrExpired)
		time.Sleep(time.Second)
		told.want(t, "a: dropped 0", "b: dropped 0")
		time.Sleep(time.Second)
		told.want(t, "a: dropped 0", "b: dropped 0", "c: dropped 0")
		time.Sleep(5*time.Minute - 3*time.Second - 1) // the default age comes before the last deadline
		require.Equal(t, uint64(1), c.Stats().Queued)
		time.Sleep(time.Nanosecond)
		told.want(t, "a: dropped 0", "b: dropped 0", "c: dropped 0", "d: dropped 0")
	})
}

func TestAMessageThatIsTooLateIsRefused(t *testing.T) {
	inBubble(t, func(t *testing.T, s *scene) {
		o, told := sending(reconnect.WhenDownKeep)
		c := s.open(o)
		err := c.Send(reconnect.Out{Message: text("a"), Deadline: s.start})
		wantFate(t, err, reconnect.FateDropped, 0)
		require.ErrorIs(t, err, reconnect.ErrExpired)
		told.want(t)
	})
}

func TestANegativeAgeIsForEver(t *testing.T) {
	inBubble(t, func(t *testing.T, s *scene) {
		o, told := sending(reconnect.WhenDownKeep)
		o.Outbox.Age = -1
		c := s.open(o)
		d := s.wantDial()
		require.NoError(t, c.Send(reconnect.Out{Message: text("a"), Deadline: s.start.Add(10 * time.Second)}))
		queue(t, c, "b")
		time.Sleep(10 * time.Second)
		told.want(t, "a: dropped 0")
		for s.now() < time.Hour {
			d.refuse(errLost)
			d = s.wantDial()
		}
		require.Equal(t, "b", written(d.accept()))
	})
}

// Promise 6: also where the write before it is stuck, nothing is sent after its deadline.
func TestNothingIsSentAfterItsDeadline(t *testing.T) {
	inBubble(t, func(t *testing.T, s *scene) {
		o, told := sending(reconnect.WhenDownFail)
		c := s.open(o)
		peer := s.wantDial().accept()
		peer.Hold()
		queue(t, c, "a")
		require.NoError(t, c.Send(reconnect.Out{Message: text("b"), Deadline: s.start.Add(time.Second)}))
		time.Sleep(time.Second)
		told.want(t, "b: dropped 0")
		peer.Release()
		require.Equal(t, "a", written(peer))
	})
}

// sluggish is a connection whose writes take a second.
type sluggish struct{ conn.Conn }

func (s sluggish) Write(m conn.Message) error {
	time.Sleep(time.Second)
	return s.Conn.Write(m)
}

// Promise 6: nor at it, though the write before it ends at that very instant, and the
// timer may be late.
func TestNothingIsSentAtItsDeadline(t *testing.T) {
	for range 100 {
		inBubble(t, func(t *testing.T, s *scene) {
			o, told := sending(reconnect.WhenDownFail)
			c, err := reconnect.New(reconnect.DialFunc(func(ctx context.Context) (conn.Conn, error) {
				opened, err := s.Dial(ctx)
				return sluggish{opened}, err
			}), o)
			require.NoError(t, err)
			defer quit(c)
			peer := s.wantDial().accept()
			queue(t, c, "a")
			synctest.Wait()
			require.NoError(t, c.Send(reconnect.Out{Message: text("b"), Deadline: s.start.Add(time.Second)}))
			time.Sleep(3 * time.Second)
			require.Equal(t, "a", written(peer))
			require.Len(t, told.all(), 2)
		})
	}
}

// Promise 6: the deadline of what comes back from a lost session still holds, though it
// may have passed meanwhile.
func TestWhatComesBackStillExpires(t *testing.T) {
	for name, test := range map[string]struct{ deadline, lost, want time.Duration }{
		"later":     {10 * time.Second, 2 * time.Second, 10 * time.Second},
		"meanwhile": {time.Second, 2 * time.Second, 2 * time.Second},
	} {
		t.Run(name, func(t *testing.T) {
			inBubble(t, func(t *testing.T, s *scene) {
				o, told := sending(reconnect.WhenDownKeep)
				c := s.open(o)
				peer := s.wantDial().accept()
				peer.Hold()
				require.NoError(t, c.Send(reconnect.Out{Message: text("a"), Repeatable: true, Deadline: s.start.Add(test.deadline)}))
				synctest.Wait()
				require.NoError(t, c.Send(reconnect.Out{Message: text("b"), Deadline: s.start.Add(time.Second)}))
				time.Sleep(test.lost) // the alarm has rung
				peer.Fail(errLost)
				synctest.Wait()
				time.Sleep(test.want - test.lost)
				told.want(t, "b: dropped 0", "a: unknown 1")
				require.ErrorIs(t, told.last(t).Err, reconnect.ErrExpired)
			})
		})
	}
}

// Promise 10: OnReceipt may be slow, or never return: that delays no write, but Send stops.
func TestADoneThatHangsBoundsTheOutbox(t *testing.T) {
	inBubble(t, func(t *testing.T, s *scene) {
		hung := make(chan struct{})
		o := run(every(time.Second))
		o.Outbox = reconnect.Outbox{Messages: 3, OnReceipt: func(context.Context, reconnect.Receipt) { <-hung }}
		c := s.open(&o)
		peer := s.wantDial().accept()
		for range 4 { // one is being told, three wait for that
			queue(t, c, "a")
			synctest.Wait()
		}
		require.Equal(t, "a a a a", written(peer))
		err := c.Send(reconnect.Out{Message: text("b")})
		require.ErrorIs(t, err, reconnect.ErrOutboxFull)
		require.ErrorContains(t, err, "3 receipts wait for Outbox.OnReceipt")
		require.NoError(t, c.Write(t.Context(), text("w")))
		close(hung)
		synctest.Wait()
		queue(t, c, "b")
		require.Equal(t, "a a a a w b", written(peer))
	})
}

// Promise 10: the same by bytes.
func TestADoneThatHangsBoundsTheBytes(t *testing.T) {
	inBubble(t, func(t *testing.T, s *scene) {
		hung := make(chan struct{})
		o := run(every(time.Second))
		o.Outbox = reconnect.Outbox{Bytes: 10, OnReceipt: func(context.Context, reconnect.Receipt) { <-hung }}
		c := s.open(&o)
		peer := s.wantDial().accept()
		for range 3 {
			queue(t, c, "12345")
			require.NotEmpty(t, written(peer))
		}
		require.ErrorIs(t, c.Send(reconnect.Out{Message: text("b")}), reconnect.ErrOutboxFull)
		close(hung)
	})
}

func TestNewNamesTheOptionOfSendingThatIsWrong(t *testing.T) {
	done := func(context.Context, reconnect.Receipt) {}
	keep := func(context.Context, reconnect.Out, error) bool { return true }
	for _, test := range []struct {
		want string
		o    reconnect.Options
	}{
		{"Options.Outbox.Messages", reconnect.Options{Outbox: reconnect.Outbox{OnReceipt: done, Messages: -1}}},
		{"Options.Outbox.Bytes", reconnect.Options{Outbox: reconnect.Outbox{OnReceipt: done, Bytes: -1}}},
		{"Options.Outbox.Overflow", reconnect.Options{Outbox: reconnect.Outbox{OnReceipt: done, Overflow: reconnect.OverflowReplaceKey + 1}}},
		{"Options.Outbox without OnReceipt", reconnect.Options{Outbox: reconnect.Outbox{Messages: 1}}},
		{"Options.Outbox without OnReceipt", reconnect.Options{Outbox: reconnect.Outbox{Bytes: 1}}},
		{"Options.Outbox without OnReceipt", reconnect.Options{Outbox: reconnect.Outbox{Age: 1}}},
		{"Options.Outbox without OnReceipt", reconnect.Options{Outbox: reconnect.Outbox{Overflow: reconnect.OverflowReplaceKey}}},
		{"Options.Outbox without OnReceipt", reconnect.Options{WhenDown: reconnect.WhenDownKeep, Outbox: reconnect.Outbox{Keep: keep}}},
		{"Options.Outbox.Keep", reconnect.Options{WhenDown: reconnect.WhenDownWait, Outbox: reconnect.Outbox{OnReceipt: done, Keep: keep}}},
		{"Options.WhenDown", reconnect.Options{WhenDown: reconnect.WhenDownKeep + 1}},
		{"Options.WhenDown is WhenDownKeep", reconnect.Options{WhenDown: reconnect.WhenDownKeep}},
		{"Options.Stall.Expected", reconnect.Options{Stall: reconnect.Stall{Expected: func(time.Time) bool { return true }}}},
		{"Options.Stall.Expected", reconnect.Options{Stall: reconnect.Stall{Limit: -1, Expected: func(time.Time) bool { return true }}}},
	} {
		_, err := reconnect.New(newScene(t), &test.o)
		require.ErrorContains(t, err, test.want)
	}
}

// Promise 6: nothing is begun after its deadline; what has begun is not cut for it.
func TestADeadlineBoundsWhenAWriteBegins(t *testing.T) {
	inBubble(t, func(t *testing.T, s *scene) {
		o, told := sending(reconnect.WhenDownKeep)
		c := s.open(o)
		peer := s.wantDial().accept()
		peer.Hold()
		valid := s.start.Add(time.Second)
		for _, data := range []string{"a", "b"} {
			require.NoError(t, c.Send(reconnect.Out{Message: text(data), Deadline: valid}))
		}
		time.Sleep(9 * time.Second)
		told.want(t, "b: dropped 0")
		require.ErrorIs(t, told.last(t).Err, reconnect.ErrExpired)
		peer.Release()
		told.want(t, "b: dropped 0", "a: written 1")
		a, b := told.last(t), told.all()[0]
		require.Equal(t, s.start, a.Began, "in time")
		require.Equal(t, s.start.Add(9*time.Second), a.Ended)
		require.Zero(t, b.Began)
	})
}

// Promise 10: SendWait waits where Send refuses, for as long as its context lasts.
func TestSendWaitWaitsForRoom(t *testing.T) {
	inBubble(t, func(t *testing.T, s *scene) {
		o, told := sending(reconnect.WhenDownKeep)
		o.Outbox.Messages = 1
		c := s.open(o)
		queue(t, c, "a")
		require.ErrorIs(t, c.Send(out("b")), reconnect.ErrOutboxFull)
		ctx, cancel := context.WithTimeoutCause(t.Context(), time.Second, errLost)
		defer cancel()
		err := c.SendWait(ctx, out("b"))
		wantFate(t, err, reconnect.FateDropped, 0)
		require.ErrorIs(t, err, errLost)
		waiting := make(chan error, 1)
		go func() { waiting <- c.SendWait(t.Context(), out("c")) }()
		synctest.Wait()
		require.Empty(t, waiting)
		peer := s.wantDial().accept()
		require.NoError(t, <-waiting)
		require.Equal(t, "a c", written(peer))
		told.want(t, "a: written 1", "c: written 1")
	})
}

// Promise 10: SendWait also waits until OnReceipt has caught up, and ends with the Conn;
// what can never fit does not wait.
func TestSendWaitEndsWhenItCannotSucceed(t *testing.T) {
	inBubble(t, func(t *testing.T, s *scene) {
		hung := make(chan struct{})
		o := run(every(time.Second))
		o.Outbox = reconnect.Outbox{Messages: 1, Bytes: 5, OnReceipt: func(context.Context, reconnect.Receipt) { <-hung }}
		c := s.open(&o)
		s.wantDial().accept()
		for range 2 { // OnReceipt is at the first, the second waits for it
			queue(t, c, "a")
			synctest.Wait()
		}
		require.ErrorIs(t, c.SendWait(t.Context(), out("123456")), reconnect.ErrOutboxFull)
		waiting := make(chan error, 1)
		go func() { waiting <- c.SendWait(t.Context(), out("b")) }()
		synctest.Wait()
		require.Empty(t, waiting)
		c.Close()
		require.ErrorIs(t, <-waiting, net.ErrClosed)
		close(hung)
	})
}

// What is queued can be seen: how many messages, and of how many bytes.
func TestStatsShowWhatIsQueued(t *testing.T) {
	inBubble(t, func(t *testing.T, s *scene) {
		o, _ := sending(reconnect.WhenDownKeep)
		c := s.open(o)
		queue(t, c, "a", "bcd")
		st := c.Stats()
		require.Equal(t, uint64(2), st.Queued)
		require.Equal(t, uint64(4), st.QueuedBytes)
		require.Equal(t, "a bcd", written(s.wantDial().accept()))
		require.Zero(t, c.Stats().QueuedBytes)
	})
}
