package reconnect_test

import (
	"context"
	"fmt"
	"net/http"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/coder/websocket"
	"github.com/stretchr/testify/require"

	"github.com/redial-go/redial/conn"
	"github.com/redial-go/redial/conn/conntest"
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

// Promise 6: no part of a message goes by another session than the rest.
func TestAPinnedMessageGoesByItsSessionOnly(t *testing.T) {
	inBubble(t, func(t *testing.T, s *scene) {
		o, told := sending(reconnect.WhenDownKeep)
		c := s.open(o)
		peer := s.wantDial().accept()
		require.NoError(t, c.Send(pinned(1, "a1")))
		require.Equal(t, "a1", written(peer))
		leave(t, c, peer, pinned(1, "a2"), pinned(1, "a3"), out("b"))
		told.want(t, "a1: written 1", "a2: unknown 1", "a3: dropped 0")
		require.ErrorIs(t, told.last(t).Err, reconnect.ErrSessionLost)
		err := c.Send(pinned(1, "a4"))
		wantFate(t, err, reconnect.FateDropped, 0)
		require.ErrorIs(t, err, reconnect.ErrSessionLost)
		require.Equal(t, "b", written(s.wantDial().accept()))
		require.ErrorContains(t, c.Send(pinned(1, "a5")), "session 1")
		require.ErrorIs(t, c.Send(pinned(3, "c")), reconnect.ErrSessionLost, "nor by one that is to come")
		require.NoError(t, c.Send(pinned(2, "d")))
	})
}

// Not begun is no excuse, nor that the session is only about to be ready.
func TestAPinnedMessageDoesNotOutliveItsSession(t *testing.T) {
	inBubble(t, func(t *testing.T, s *scene) {
		o, told := sending(reconnect.WhenDownKeep)
		var c *reconnect.Conn
		o.OnSession = refuseFirst
		o.Run.Trace = &reconnect.Trace{SessionStart: func(n *reconnect.Session) {
			if n.Number == 1 {
				require.NoError(t, c.Send(pinned(1, "a")))
			}
		}}
		c = s.open(o)
		s.wantDial().accept()
		told.want(t, "a: dropped 0")
		s.wantDial().accept().FailWrite(errNotBegun)
		require.NoError(t, c.Send(pinned(2, "b")))
		told.want(t, "a: dropped 0", "b: dropped 2")
		require.Empty(t, written(s.wantDial().accept()))
	})
}

// Promise 6: with a pin the parts of one whole go by one session or not at all.
func TestPartsThatArePinnedDoNotGoByTheNextSession(t *testing.T) {
	k := new(clerk)
	inVenue(t, k.serve, func(t *testing.T, v *venue) {
		o, told := sending(reconnect.WhenDownKeep)
		c := v.ready(t, o)
		v.pipe(t).Window(conntest.ToServer, 1000)
		v.pipe(t).Stall(conntest.ToServer)
		for i := range 5 {
			require.NoError(t, c.Send(reconnect.Out{Message: named(fmt.Sprint(i), 50_000), Session: 1}))
		}
		require.NoError(t, c.Send(reconnect.Out{Message: named("whole", 10)}))
		synctest.Wait()
		v.network.ResetAll(venueAddr)
		time.Sleep(time.Second)
		require.Equal(t, [][]string{{}, {"whole x 10"}}, k.all())
		require.Len(t, told.all(), 6)
		for i, fate := range []reconnect.Fate{reconnect.FateUnknown, reconnect.FateDropped, reconnect.FateDropped, reconnect.FateDropped, reconnect.FateDropped, reconnect.FateWritten} {
			require.Equal(t, fate, told.all()[i].Fate)
		}
	})
}

// Promises 8 and 10: a peer that floods us and reads nothing makes neither a deadlock
// nor a heap: the write timeout cuts, and the bounds hold.
func TestAPeerThatFloodsAndNeverReadsIsCutOff(t *testing.T) {
	flood := conntest.Frame{Head: conntest.Fin | conntest.TextFrame, Payload: make([]byte, 100)}.Bytes()
	inVenue(t, func(ctx context.Context, c *websocket.Conn, r *http.Request) {
		for ctx.Err() == nil && conntest.PipeOf(ctx).Live() {
			conntest.PipeOf(ctx).Inject(conntest.ToClient, flood)
			time.Sleep(time.Millisecond)
		}
	}, func(t *testing.T, v *venue) {
		v.dialer.Conn.WriteTimeout = 5 * time.Second
		o, told := sending(reconnect.WhenDownKeep)
		o.OnMessage = func(context.Context, reconnect.Message) {}
		o.Outbox.Messages, o.Outbox.Bytes = 10, 300_000
		c := v.ready(t, o)
		accepted, refused := 0, 0
		for v.now() < 12*time.Second {
			if c.Send(reconnect.Out{Message: named("m", 40_000)}) == nil {
				accepted++
			} else {
				refused++
			}
			require.LessOrEqual(t, c.Stats().Queued, uint64(8), "7 that wait, and the one that is written")
			time.Sleep(100 * time.Millisecond)
		}
		require.Positive(t, refused)
		require.GreaterOrEqual(t, c.Stats().Sessions, uint64(2))
		require.Greater(t, c.Stats().Received, uint64(5000), "reading went on")
		quit(c)
		require.Len(t, told.all(), accepted)
	})
}
