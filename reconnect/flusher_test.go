package reconnect_test

import (
	"context"
	"errors"
	"fmt"
	"net"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/redial-go/redial/conn"
	"github.com/redial-go/redial/conn/conntest"
	"github.com/redial-go/redial/reconnect"
)

// batching opens a Conn whose connections write batches, and holds the first write back: that
// of "first".
func batching(t *testing.T, s *scene, down reconnect.WhenDown) (*reconnect.Conn, *conntest.Fake, *journal) {
	s.fake.Batches = true
	o, told := sending(down)
	c := s.open(o)
	peer := s.wantDial().accept()
	peer.Hold()
	queue(t, c, "first")
	s.wantNoDial()
	return c, peer, told
}

// What has come while a message was being written goes as a batch, of at most 64 messages.
func TestWhatIsQueuedIsWrittenInBatches(t *testing.T) {
	inBubble(t, func(t *testing.T, s *scene) {
		c, peer, told := batching(t, s, reconnect.WhenDownFail)
		want := []string{"first"}
		for i := range 100 {
			want = append(want, fmt.Sprint(i))
		}
		queue(t, c, want[1:]...)
		peer.Release()
		require.Equal(t, strings.Join(want, " "), written(peer))
		require.Equal(t, []int{64, 36}, peer.Batches())
		require.Len(t, told.all(), 101)
		require.Equal(t, uint64(101), c.Stats().Written)
	})
}

// A batch holds little more than 32 KiB, so that one write timeout is enough for it.
func TestABatchOfLargeMessagesIsShort(t *testing.T) {
	inBubble(t, func(t *testing.T, s *scene) {
		c, peer, _ := batching(t, s, reconnect.WhenDownFail)
		large := strings.Repeat("x", 20<<10)
		queue(t, c, large, large, large, large)
		peer.Release()
		written(peer)
		require.Equal(t, []int{2, 2}, peer.Batches())
	})
}

// Promise 6: of a batch that fails, each message has the fate that is its own.
func TestEachMessageOfAFailedBatchHasItsFate(t *testing.T) {
	errReset := errors.New("reset")
	notWritten := fmt.Errorf("%w: %w", conn.ErrNotWritten, errReset)
	for name, c := range map[string]struct {
		down reconnect.WhenDown
		err  error
		told []string
		next string // what the next session writes
	}{
		"kept":          {reconnect.WhenDownKeep, errReset, []string{"first: written 1", "a: written 1", "b: unknown 1", "c: written 2", "d: written 2"}, "c d"},
		"kept, unbegun": {reconnect.WhenDownKeep, notWritten, []string{"first: written 1", "a: written 1", "b: written 2", "c: written 2", "d: written 2"}, "b c d"},
		"not kept":      {reconnect.WhenDownFail, errReset, []string{"first: written 1", "a: written 1", "b: unknown 1", "c: dropped 1", "d: dropped 1"}, ""},
	} {
		t.Run(name, func(t *testing.T) {
			inBubble(t, func(t *testing.T, s *scene) {
				o, peer, told := batching(t, s, c.down)
				queue(t, o, "a", "b", "c", "d")
				peer.FailWriteAfter(2, c.err)
				peer.Release()
				require.Equal(t, "first a", written(peer))
				next := s.wantDial().accept()
				require.Equal(t, c.next, written(next))
				told.want(t, c.told...)
				for _, r := range told.all() {
					require.Equal(t, r.Fate == reconnect.FateDropped, r.Began.IsZero(), "%s", r.Out.Data)
				}
			})
		})
	}
}

// A message of a batch that the connection refuses costs itself alone, and those behind it keep
// their order.
func TestARefusedMessageLeavesItsBatchBehind(t *testing.T) {
	inVenue(t, nil, func(t *testing.T, v *venue) {
		o, told := sending(reconnect.WhenDownKeep)
		c := v.open(t, o)
		for _, m := range []conn.Message{text("a"), {Data: []byte("bad"), Type: 7}, text("b"), text("c")} {
			require.NoError(t, c.Send(reconnect.Out{Message: m}))
		}
		require.NoError(t, c.Await(t.Context(), reconnect.StateReady))
		told.want(t, "a: written 1", "bad: dropped 1", "b: written 1", "c: written 1")
		require.ErrorIs(t, told.all()[1].Err, conn.ErrBadMessage)
	})
}

// Promise 6: what was being written is of unknown fate and never sent again; the rest is kept.
func TestALostSessionLeavesItsQueueToTheNext(t *testing.T) {
	inBubble(t, func(t *testing.T, s *scene) {
		o, told := sending(reconnect.WhenDownKeep)
		c := s.open(o)
		leave(t, c, s.wantDial().accept(), out("a"), out("b"), out("c"))
		told.want(t, "a: unknown 1")
		now := time.Now()
		want := reconnect.Receipt{Out: out("a"), Fate: reconnect.FateUnknown, Session: 1, Tries: 1, Began: now, Ended: now, Err: told.last(t).Err}
		require.Equal(t, want, told.last(t))
		require.ErrorIs(t, told.last(t).Err, errLost)
		queue(t, c, "d")
		require.Equal(t, "b c d", written(s.wantDial().accept()))
		told.want(t, "a: unknown 1", "b: written 2", "c: written 2", "d: written 2")
		require.Equal(t, 1, told.last(t).Tries)
	})
}

// Promise 6: a queue is only for the session that was ready when it came.
func TestALostSessionsQueueIsDroppedUnlessMessagesAreKept(t *testing.T) {
	for _, down := range []reconnect.WhenDown{reconnect.WhenDownFail, reconnect.WhenDownWait} {
		inBubble(t, func(t *testing.T, s *scene) {
			o, told := sending(down)
			c := s.open(o)
			leave(t, c, s.wantDial().accept(), repeatable("a"), out("b"), repeatable("c"))
			told.want(t, "a: unknown 1", "b: dropped 0", "c: dropped 0")
			require.ErrorIs(t, told.last(t).Err, reconnect.ErrSessionLost)
			require.Regexp(t, "^its session was lost: (read|write): lost$", told.last(t).Err.Error())
			require.Empty(t, written(s.wantDial().accept()))
		})
	}
}

// Promise 6: an order is not a subscription.
func TestKeepHandsBackWhatItDoesNotWant(t *testing.T) {
	inBubble(t, func(t *testing.T, s *scene) {
		o, told := sending(reconnect.WhenDownKeep)
		var asked notes
		o.Outbox.Keep = func(_ context.Context, m reconnect.Out, cause error) bool {
			asked.add(string(m.Data))
			require.ErrorIs(t, cause, errLost)
			return m.Key == "subscription"
		}
		c := s.open(o)
		leave(t, c, s.wantDial().accept(), out("a"), keyed("order", "b"), keyed("subscription", "c"), keyed("order", "d"))
		require.Equal(t, []string{"b", "c", "d"}, asked.all())
		told.want(t, "a: unknown 1", "b: dropped 0", "d: dropped 0")
		require.Equal(t, keyed("order", "d"), told.last(t).Out)
		require.ErrorIs(t, told.last(t).Err, reconnect.ErrSessionLost)
		require.Equal(t, "c", written(s.wantDial().accept()))
	})
}

// A session that never was ready leaves nothing behind, nor does a failed dial.
func TestKeepIsAskedOnlyWhenAReadySessionIsLost(t *testing.T) {
	inBubble(t, func(t *testing.T, s *scene) {
		o, _ := sending(reconnect.WhenDownKeep)
		o.OnSession = refuseFirst
		o.Outbox.Keep = func(context.Context, reconnect.Out, error) bool { t.Error("asked"); return false }
		c := s.open(o)
		queue(t, c, "a")
		s.wantDial().refuse(errLost)
		s.wantDial().accept()
		require.Equal(t, "a", written(s.wantDial().accept()))
	})
}

// Its data is the caller's again.
func TestKeepIsNotAskedAboutWhatIsDroppedAlready(t *testing.T) {
	inBubble(t, func(t *testing.T, s *scene) {
		o, told := sending(reconnect.WhenDownKeep)
		var asked notes
		o.Outbox.Keep = func(_ context.Context, m reconnect.Out, _ error) bool {
			asked.add(string(m.Data))
			time.Sleep(time.Second)
			return true
		}
		c := s.open(o)
		late := out("c")
		late.Deadline = s.start.Add(time.Second / 2)
		leave(t, c, s.wantDial().accept(), out("a"), out("b"), late, out("d"))
		time.Sleep(2 * time.Second)
		told.want(t, "a: unknown 1", "c: dropped 0")
		require.Equal(t, []string{"b", "d"}, asked.all())
		require.Equal(t, "b d", written(s.wantDial().accept()))
	})
}

// Promise 6: told once, though Keep takes its time.
func TestKeepMayDecideTooLate(t *testing.T) {
	inBubble(t, func(t *testing.T, s *scene) {
		o, told := sending(reconnect.WhenDownKeep)
		o.Outbox.Keep = func(context.Context, reconnect.Out, error) bool { time.Sleep(time.Second); return false }
		c := s.open(o)
		late := out("b")
		late.Deadline = s.start.Add(time.Second / 2)
		leave(t, c, s.wantDial().accept(), out("a"), late, out("c"))
		time.Sleep(2 * time.Second)
		told.want(t, "a: unknown 1", "b: dropped 0", "c: dropped 0")
		require.ErrorIs(t, told.all()[1].Err, reconnect.ErrExpired)
		require.ErrorIs(t, told.last(t).Err, reconnect.ErrSessionLost)
	})
}

// Promises 11 and 14.
func TestKeepMayCloseTheConn(t *testing.T) {
	inBubble(t, func(t *testing.T, s *scene) {
		o, told := sending(reconnect.WhenDownKeep)
		var c *reconnect.Conn
		var asked notes
		o.Outbox.Keep = func(_ context.Context, m reconnect.Out, _ error) bool {
			asked.add(string(m.Data))
			c.Close()
			require.ErrorIs(t, c.Write(context.Background(), text("w")), net.ErrClosed)
			return true
		}
		c = s.open(o)
		leave(t, c, s.wantDial().accept(), out("a"), out("b"), out("c"))
		<-c.Done()
		require.Equal(t, []string{"b"}, asked.all())
		told.want(t, "a: unknown 1", "b: dropped 0", "c: dropped 0")
		require.ErrorIs(t, told.last(t).Err, net.ErrClosed)
		require.Zero(t, s.now())
	})
}

// Promise 14: no lock is held while Keep decides.
func TestKeepMaySend(t *testing.T) {
	inBubble(t, func(t *testing.T, s *scene) {
		o, _ := sending(reconnect.WhenDownKeep)
		var c *reconnect.Conn
		o.Outbox.Keep = func(_ context.Context, m reconnect.Out, _ error) bool {
			return c.Send(out("instead of "+string(m.Data))) != nil
		}
		c = s.open(o)
		leave(t, c, s.wantDial().accept(), out("a"), out("b"))
		require.Equal(t, "instead of b", written(s.wantDial().accept()))
	})
}

// Promise 6: only what is marked is sent again.
func TestARepeatableMessageIsSentAgain(t *testing.T) {
	inBubble(t, func(t *testing.T, s *scene) {
		o, told := sending(reconnect.WhenDownKeep)
		c := s.open(o)
		leave(t, c, s.wantDial().accept(), repeatable("a"), out("b"))
		told.want(t)
		require.Equal(t, "a b", written(s.wantDial().accept()), "at the head of the queue")
		told.want(t, "a: written 2", "b: written 2")
		require.Equal(t, 2, told.all()[0].Tries)
		require.Equal(t, 1, told.all()[1].Tries)
	})
}

// Promise 6: what may have arrived is not dropped, whatever ends it.
func TestTheFateOfARepeatableMessageThatIsGivenUpIsUnknown(t *testing.T) {
	for name, end := range map[string]func(o *reconnect.Options) (m reconnect.Out, cause error){
		"its deadline": func(*reconnect.Options) (reconnect.Out, error) {
			m := repeatable("a")
			m.Deadline = time.Now().Add(time.Second)
			return m, reconnect.ErrExpired
		},
		"Keep": func(o *reconnect.Options) (reconnect.Out, error) {
			o.Outbox.Keep = func(context.Context, reconnect.Out, error) bool { return false }
			return repeatable("a"), reconnect.ErrSessionLost
		},
		"its session": func(*reconnect.Options) (reconnect.Out, error) {
			return reconnect.Out{Message: text("a"), Repeatable: true, Session: 1}, reconnect.ErrSessionLost
		},
	} {
		t.Run(name, func(t *testing.T) {
			inBubble(t, func(t *testing.T, s *scene) {
				o, told := sending(reconnect.WhenDownKeep)
				m, cause := end(o)
				c := s.open(o)
				leave(t, c, s.wantDial().accept(), m)
				s.wantDial() // after a second
				told.want(t, "a: unknown 1")
				require.ErrorIs(t, told.last(t).Err, cause)
				require.Equal(t, uint64(1), c.Stats().Unknown)
			})
		})
	}
}

// Promise 6: that a further try did not begin does not settle what became of the first.
func TestADoubtOutlivesATryThatWasNotBegun(t *testing.T) {
	inBubble(t, func(t *testing.T, s *scene) {
		o, told := sending(reconnect.WhenDownKeep)
		c := s.open(o)
		m := repeatable("a")
		m.Deadline = s.start.Add(3 * time.Second / 2)
		leave(t, c, s.wantDial().accept(), m)
		s.wantDial().acceptHeld().FailWrite(errNotBegun)
		s.wantDial() // after two seconds
		told.want(t, "a: unknown 2")
		require.Equal(t, 1, told.last(t).Tries)
	})
}

// Promise 6: what was not begun goes back to where it was, and was not tried.
func TestWhatWasNotBegunGoesBackToTheHead(t *testing.T) {
	inBubble(t, func(t *testing.T, s *scene) {
		o, told := sending(reconnect.WhenDownKeep)
		c := s.open(o)
		peer := s.wantDial().accept()
		peer.FailWrite(errNotBegun)
		queue(t, c, "a", "b")
		next := s.wantDial().accept()
		require.Equal(t, "a b", written(next))
		told.want(t, "a: written 2", "b: written 2")
		require.Equal(t, 1, told.all()[0].Tries)
	})
}

func TestWhatWasNotBegunIsDroppedUnlessMessagesAreKept(t *testing.T) {
	inBubble(t, func(t *testing.T, s *scene) {
		o, told := sending(reconnect.WhenDownFail)
		c := s.open(o)
		s.wantDial().accept().FailWrite(errNotBegun)
		queue(t, c, "a")
		told.want(t, "a: dropped 1")
		require.Zero(t, told.last(t).Tries)
		require.ErrorIs(t, told.last(t).Err, reconnect.ErrSessionLost)
	})
}

// Promise 6: the cause of a loss is told, but must not pass for the end of all.
func TestALostSessionIsNotTakenForAClosedConn(t *testing.T) {
	inBubble(t, func(t *testing.T, s *scene) {
		o, told := sending(reconnect.WhenDownWait)
		c := s.open(o)
		peer := s.wantDial().accept()
		peer.Hold()
		queue(t, c, "a", "b")
		synctest.Wait()
		peer.CloseNow()
		told.want(t, "a: unknown 1", "b: dropped 0")
		require.NotErrorIs(t, told.last(t).Err, net.ErrClosed, "though that was the cause")
		require.ErrorIs(t, told.last(t).Err, reconnect.ErrSessionLost)
	})
}

// Promise 11: Close waits for no write.
func TestCloseDuringAFlushCutsAtOnce(t *testing.T) {
	inBubble(t, func(t *testing.T, s *scene) {
		o, told := sending(reconnect.WhenDownKeep)
		c := s.open(o)
		queue(t, c, "a", "b")
		s.wantDial().acceptHeld()
		quit(c)
		require.Zero(t, s.now())
		told.want(t, "a: unknown 1", "b: dropped 0")
		require.ErrorIs(t, told.all()[0].Err, net.ErrClosed)
		require.ErrorIs(t, told.last(t).Err, net.ErrClosed)
	})
}

// Promise 6: wherever the connection is cut, the next one begins with a whole message,
// and none is on both.
func TestAMessageIsNeverSplitOverTwoConnections(t *testing.T) {
	for cut := int64(1); cut < 200_100; cut = cut*3/2 + 1 { // in headers, in the first message, between the two, in the second
		k := new(clerk)
		inVenue(t, k.serve, func(t *testing.T, v *venue) {
			o, told := sending(reconnect.WhenDownKeep)
			c := v.ready(t, o)
			v.pipe(t).Cut(conntest.ToServer, cut)
			for _, name := range []string{"1", "2", "3"} {
				require.NoError(t, c.Send(reconnect.Out{Message: named(name, 100_000), Tag: name}))
			}
			time.Sleep(time.Second)
			arrived := make(map[string]int)
			lines := k.all()
			require.Len(t, lines, 2)
			for _, line := range lines[1] {
				require.True(t, strings.HasSuffix(line, " x 100000"), "cut at %d: %v", cut, lines)
			}
			for _, line := range append(lines[0], lines[1]...) {
				if name, whole := strings.CutSuffix(line, " x 100000"); whole {
					arrived[name]++
				}
			}
			require.Len(t, told.all(), 3)
			for _, r := range told.all() {
				name := r.Out.Tag.(string)
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
