package reconnect_test

import (
	"context"
	"fmt"
	"net/http"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/coder/websocket"
	"github.com/stretchr/testify/require"

	"github.com/redial-go/redial/conn"
	"github.com/redial-go/redial/conn/conntest"
	"github.com/redial-go/redial/reconnect"
)

// Promise 10: the limit on the count does not include messages that are being written.
func TestTheOutboxIsBoundedByCount(t *testing.T) {
	inBubble(t, func(t *testing.T, s *scene) {
		o, receipts := sending(reconnect.WhenDownKeep)
		o.Outbox.Messages = 2
		c := s.open(o)
		peer := s.wantDial().accept()
		peer.Hold()
		queue(t, c, "a")
		synctest.Wait()
		queue(t, c, "b", "c")
		err := c.Send(reconnect.Outgoing{Message: text("d")})
		wantFate(t, err, reconnect.FateDropped, 0)
		require.ErrorIs(t, err, reconnect.ErrOutboxFull)
		require.ErrorContains(t, err, "2 messages of 2 bytes wait")
		peer.Release()
		receipts.want(t, "a: written 1", "b: written 1", "c: written 1")
		queue(t, c, "e")
	})
}

// Promise 10.
func TestTheOutboxIsBoundedByBytes(t *testing.T) {
	inBubble(t, func(t *testing.T, s *scene) {
		o, _ := sending(reconnect.WhenDownKeep)
		o.Outbox.Bytes = 5
		c := s.open(o)
		require.ErrorContains(t, c.Send(reconnect.Outgoing{Message: text("123456")}), "a message of 6 bytes is larger than the limit of 5")
		queue(t, c, "12", "345")
		require.ErrorIs(t, c.Send(reconnect.Outgoing{Message: text("6")}), reconnect.ErrOutboxFull)
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
		require.ErrorIs(t, c.Send(reconnect.Outgoing{}), reconnect.ErrOutboxFull)
		s.wantDial().accept()
		require.Zero(t, c.Stats().Queued)
		require.Error(t, c.Send(reconnect.Outgoing{Message: text(strings.Repeat("x", 16<<20+1))}))
		queue(t, c, strings.Repeat("x", 16<<20))
	})
}

// Promise 10: a message that Write queues needs no room, and takes none.
func TestAQueuedWriteIsNotCounted(t *testing.T) {
	inBubble(t, func(t *testing.T, s *scene) {
		o, receipts := sending(reconnect.WhenDownKeep)
		o.Outbox.Messages, o.Outbox.Overflow = 1, reconnect.OutboxDropOldest
		c := s.open(o)
		wrote := make(chan error, 1)
		go func() { wrote <- c.Write(t.Context(), text("w")) }()
		synctest.Wait()
		queue(t, c, "a", "b")
		require.Equal(t, "w b", written(s.wantDial().accept()))
		require.NoError(t, <-wrote)
		receipts.want(t, "a: dropped 0", "b: written 1")
	})
}

func TestTheOldestAreDisplaced(t *testing.T) {
	inBubble(t, func(t *testing.T, s *scene) {
		o, receipts := sending(reconnect.WhenDownKeep)
		o.Outbox.Messages, o.Outbox.Bytes, o.Outbox.Overflow = 3, 6, reconnect.OutboxDropOldest
		c := s.open(o)
		queue(t, c, "1", "2", "3", "4")
		receipts.want(t, "1: dropped 0")
		queue(t, c, "5555")
		receipts.want(t, "1: dropped 0", "2: dropped 0")
		require.ErrorIs(t, receipts.last(t).Err, reconnect.ErrOutboxFull)
		require.ErrorIs(t, c.Send(reconnect.Outgoing{Message: text("1234567")}), reconnect.ErrOutboxFull, "no sacrifice makes room for it")
		require.Equal(t, "3 4 5555", written(s.wantDial().accept()))
	})
}

func TestAMessageReplacesTheOneWithItsKey(t *testing.T) {
	inBubble(t, func(t *testing.T, s *scene) {
		o, receipts := sending(reconnect.WhenDownKeep)
		o.Outbox.Messages, o.Outbox.Bytes, o.Outbox.Overflow = 2, 4, reconnect.OutboxReplaceKey
		c := s.open(o)
		require.NoError(t, c.Send(keyed("x", "x1")))
		require.NoError(t, c.Send(keyed("y", "y1")))
		require.NoError(t, c.Send(keyed("x", "x2")), "full, but for its own key")
		receipts.want(t, "x1: dropped 0")
		require.ErrorIs(t, receipts.last(t).Err, reconnect.ErrReplaced)
		for _, refused := range []reconnect.Outgoing{keyed("z", "z"), keyed("x", "x33"), keyed("", "-")} {
			require.ErrorIs(t, c.Send(refused), reconnect.ErrOutboxFull)
		}
		receipts.want(t, "x1: dropped 0")
		require.Equal(t, "y1 x2", written(s.wantDial().accept()), "at the end of the queue")
	})
}

// A message replaces an older one with its key also while the outbox is not full, because the
// older one is of no use any more. Without a key nothing is replaced.
func TestAMessageReplacesTheOneWithItsKeyThoughThereIsRoom(t *testing.T) {
	inBubble(t, func(t *testing.T, s *scene) {
		o, receipts := sending(reconnect.WhenDownKeep)
		o.Outbox.Overflow = reconnect.OutboxReplaceKey
		c := s.open(o)
		for _, m := range []reconnect.Outgoing{keyed("x", "x1"), keyed("", "1"), keyed("", "2"), keyed("x", "x2"), keyed("x", "x3")} {
			require.NoError(t, c.Send(m))
		}
		receipts.want(t, "x1: dropped 0", "x2: dropped 0")
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

// Promise 6: a message that is being written is not replaced. When it comes back from a lost
// session, a newer one with its key replaces it.
func TestTheMessageThatIsBeingWrittenIsNotReplaced(t *testing.T) {
	inBubble(t, func(t *testing.T, s *scene) {
		o, receipts := sending(reconnect.WhenDownKeep)
		o.Outbox.Overflow = reconnect.OutboxReplaceKey
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
		receipts.want(t, "x1: unknown 1")
		require.ErrorIs(t, receipts.last(t).Err, reconnect.ErrReplaced)
		next := s.wantDial().accept()
		next.Hold()
		require.NoError(t, c.Send(keyed("x", "x3")))
		synctest.Wait()
		require.NoError(t, c.Send(keyed("x", "x4")))
		next.Release()
		require.Equal(t, "x2 x3 x4", written(next))
	})
}

// A message that comes back from a lost session is dropped if a newer one with its key is
// queued, though it is Repeatable.
func TestAMessageThatComesBackGivesWayToANewerOneWithItsKey(t *testing.T) {
	inBubble(t, func(t *testing.T, s *scene) {
		o, receipts := sending(reconnect.WhenDownKeep)
		o.Outbox.Overflow = reconnect.OutboxReplaceKey
		c := s.open(o)
		peer := s.wantDial().accept()
		peer.Hold()
		again := keyed("x", "x1")
		again.Repeatable = true
		require.NoError(t, c.Send(again))
		synctest.Wait()
		require.NoError(t, c.Send(keyed("x", "x2")))
		peer.Fail(errLost)
		receipts.want(t, "x1: unknown 1")
		require.ErrorIs(t, receipts.last(t).Err, reconnect.ErrReplaced)
		require.Equal(t, "x2", written(s.wantDial().accept()))
	})
}

// Promises 6 and 10: a message is dropped at the very instant of its deadline, whatever is
// before it in the queue.
func TestAMessageIsDroppedWhenItIsTooLate(t *testing.T) {
	inBubble(t, func(t *testing.T, s *scene) {
		o, receipts := sending(reconnect.WhenDownKeep)
		c := s.open(o)
		s.wantDial()
		for _, m := range []struct {
			data string
			at   time.Duration
		}{{"b", 2 * time.Second}, {"a", time.Second}, {"c", 3 * time.Second}, {"d", time.Hour}} {
			require.NoError(t, c.Send(reconnect.Outgoing{Message: text(m.data), Deadline: s.start().Add(m.at)}))
		}
		time.Sleep(time.Second - 1)
		receipts.want(t)
		time.Sleep(time.Nanosecond)
		receipts.want(t, "a: dropped 0")
		require.ErrorIs(t, receipts.last(t).Err, reconnect.ErrExpired)
		time.Sleep(time.Second)
		receipts.want(t, "a: dropped 0", "b: dropped 0")
		time.Sleep(time.Second)
		receipts.want(t, "a: dropped 0", "b: dropped 0", "c: dropped 0")
		time.Sleep(5*time.Minute - 3*time.Second - 1) // the default age comes before the last deadline
		require.Equal(t, uint64(1), c.Stats().Queued)
		time.Sleep(time.Nanosecond)
		receipts.want(t, "a: dropped 0", "b: dropped 0", "c: dropped 0", "d: dropped 0")
	})
}

// Promise 6: the age of a message counts from its own Send, though the write of another one is under way.
func TestTheAgeOfAMessageCountsFromItsSend(t *testing.T) {
	for _, age := range []time.Duration{5 * time.Second, 2 * time.Minute} {
		inBubble(t, func(t *testing.T, s *scene) {
			o, receipts := sending(reconnect.WhenDownKeep)
			o.Outbox.Age = age
			o.Liveness.Limit = -1
			c := s.open(o)
			s.wantDial().accept().Hold()
			queue(t, c, "a")
			synctest.Wait()
			time.Sleep(2 * time.Second)
			queue(t, c, "b")
			time.Sleep(age - 1)
			receipts.want(t)
			time.Sleep(time.Nanosecond)
			receipts.want(t, "b: dropped 0")
		})
	}
}

func TestAMessageThatIsTooLateIsRefused(t *testing.T) {
	inBubble(t, func(t *testing.T, s *scene) {
		o, receipts := sending(reconnect.WhenDownKeep)
		c := s.open(o)
		err := c.Send(reconnect.Outgoing{Message: text("a"), Deadline: s.start()})
		wantFate(t, err, reconnect.FateDropped, 0)
		require.ErrorIs(t, err, reconnect.ErrExpired)
		receipts.want(t)
	})
}

func TestANegativeAgeIsForEver(t *testing.T) {
	inBubble(t, func(t *testing.T, s *scene) {
		o, receipts := sending(reconnect.WhenDownKeep)
		o.Outbox.Age = -1
		c := s.open(o)
		d := s.wantDial()
		require.NoError(t, c.Send(reconnect.Outgoing{Message: text("a"), Deadline: s.start().Add(10 * time.Second)}))
		queue(t, c, "b")
		time.Sleep(10 * time.Second)
		receipts.want(t, "a: dropped 0")
		for s.now() < time.Hour {
			d.refuse(errLost)
			d = s.wantDial()
		}
		require.Equal(t, "b", written(d.accept()))
	})
}

// Promise 6: nothing is sent after its deadline, also if the write before it is stuck.
func TestNothingIsSentAfterItsDeadline(t *testing.T) {
	inBubble(t, func(t *testing.T, s *scene) {
		o, receipts := sending(reconnect.WhenDownFail)
		c := s.open(o)
		peer := s.wantDial().accept()
		peer.Hold()
		queue(t, c, "a")
		require.NoError(t, c.Send(reconnect.Outgoing{Message: text("b"), Deadline: s.start().Add(time.Second)}))
		time.Sleep(time.Second)
		receipts.want(t, "b: dropped 0")
		peer.Release()
		require.Equal(t, "a", written(peer))
	})
}

// Promise 6: nothing is sent at its deadline, though the write before it ends at that very
// instant and the timer may be late.
func TestNothingIsSentAtItsDeadline(t *testing.T) {
	for range 100 {
		inBubble(t, func(t *testing.T, s *scene) {
			o, receipts := sending(reconnect.WhenDownFail)
			c, err := reconnect.New(reconnect.DialFunc(func(ctx context.Context) (conn.Conn, error) {
				opened, err := s.Dial(ctx)
				return slowConn{Conn: opened}, err
			}), o)
			require.NoError(t, err)
			defer closeAndWait(c)
			peer := s.wantDial().accept()
			queue(t, c, "a")
			synctest.Wait()
			require.NoError(t, c.Send(reconnect.Outgoing{Message: text("b"), Deadline: s.start().Add(time.Second)}))
			time.Sleep(3 * time.Second)
			require.Equal(t, "a", written(peer))
			require.Len(t, receipts.all(), 2)
		})
	}
}

// Promise 6: the deadline of a message that comes back from a lost session still holds, also if
// it passed before the loss.
func TestWhatComesBackStillExpires(t *testing.T) {
	for name, test := range map[string]struct{ deadline, lost, want time.Duration }{
		"later":     {10 * time.Second, 2 * time.Second, 10 * time.Second},
		"meanwhile": {time.Second, 2 * time.Second, 2 * time.Second},
	} {
		t.Run(name, func(t *testing.T) {
			inBubble(t, func(t *testing.T, s *scene) {
				o, receipts := sending(reconnect.WhenDownKeep)
				c := s.open(o)
				peer := s.wantDial().accept()
				peer.Hold()
				require.NoError(t, c.Send(reconnect.Outgoing{
					Message:    text("a"),
					Repeatable: true,
					Deadline:   s.start().Add(test.deadline),
				}))
				synctest.Wait()
				require.NoError(t, c.Send(reconnect.Outgoing{Message: text("b"), Deadline: s.start().Add(time.Second)}))
				time.Sleep(test.lost) // the deadline of b has passed
				peer.Fail(errLost)
				synctest.Wait()
				time.Sleep(test.want - test.lost)
				receipts.want(t, "b: dropped 0", "a: unknown 1")
				require.ErrorIs(t, receipts.last(t).Err, reconnect.ErrExpired)
			})
		})
	}
}

// Promise 6: no write begins after the deadline of its message. A write that has begun is not
// cut for it.
func TestADeadlineBoundsWhenAWriteBegins(t *testing.T) {
	inBubble(t, func(t *testing.T, s *scene) {
		o, receipts := sending(reconnect.WhenDownKeep)
		c := s.open(o)
		peer := s.wantDial().accept()
		peer.Hold()
		valid := s.start().Add(time.Second)
		for _, data := range []string{"a", "b"} {
			require.NoError(t, c.Send(reconnect.Outgoing{Message: text(data), Deadline: valid}))
		}
		time.Sleep(9 * time.Second)
		receipts.want(t, "b: dropped 0")
		require.ErrorIs(t, receipts.last(t).Err, reconnect.ErrExpired)
		peer.Release()
		receipts.want(t, "b: dropped 0", "a: written 1")
		a, b := receipts.last(t), receipts.all()[0]
		require.Equal(t, s.start(), a.Began, "in time")
		require.Equal(t, s.start().Add(9*time.Second), a.Ended)
		require.Zero(t, b.Began)
	})
}

// Promise 6: a message for one session goes by no other.
func TestAPinnedMessageGoesByItsSessionOnly(t *testing.T) {
	inBubble(t, func(t *testing.T, s *scene) {
		o, receipts := sending(reconnect.WhenDownKeep)
		c := s.open(o)
		peer := s.wantDial().accept()
		require.NoError(t, c.Send(pinned(1, "a1")))
		require.Equal(t, "a1", written(peer))
		sendAndLose(t, c, peer, pinned(1, "a2"), pinned(1, "a3"), out("b"))
		receipts.want(t, "a1: written 1", "a2: unknown 1", "a3: dropped 0")
		require.ErrorIs(t, receipts.last(t).Err, reconnect.ErrSessionLost)
		err := c.Send(pinned(1, "a4"))
		wantFate(t, err, reconnect.FateDropped, 0)
		require.ErrorIs(t, err, reconnect.ErrSessionLost)
		require.Equal(t, "b", written(s.wantDial().accept()))
		require.ErrorContains(t, c.Send(pinned(1, "a5")), "session 1")
		require.ErrorIs(t, c.Send(pinned(3, "c")), reconnect.ErrSessionLost, "nor by one that is to come")
		require.NoError(t, c.Send(pinned(2, "d")))
	})
}

// A message for one session is dropped with it, also if its write did not begin or the session
// never was ready.
func TestAPinnedMessageDoesNotOutliveItsSession(t *testing.T) {
	inBubble(t, func(t *testing.T, s *scene) {
		o, receipts := sending(reconnect.WhenDownKeep)
		var c *reconnect.Conn
		o.OnSession = refuseFirst
		o.Run.Trace = &reconnect.Trace{SessionStart: func(n *reconnect.Session) {
			if n.Number == 1 {
				require.NoError(t, c.Send(pinned(1, "a")))
			}
		}}
		c = s.open(o)
		s.wantDial().accept()
		receipts.want(t, "a: dropped 0")
		s.wantDial().accept().FailWrite(errNotBegun)
		require.NoError(t, c.Send(pinned(2, "b")))
		receipts.want(t, "a: dropped 0", "b: dropped 2")
		require.Empty(t, written(s.wantDial().accept()))
	})
}

// Promise 6: with Session set, the parts of one whole go by one session or not at all.
func TestPartsThatArePinnedDoNotGoByTheNextSession(t *testing.T) {
	seen := new(messageLog)
	withWSServer(t, seen.serve, func(t *testing.T, server *wsServer) {
		o, receipts := sending(reconnect.WhenDownKeep)
		c := server.ready(t, o)
		server.pipe(t).Window(conntest.ToServer, 1000)
		server.pipe(t).Stall(conntest.ToServer)
		for i := range 5 {
			require.NoError(t, c.Send(reconnect.Outgoing{Message: named(fmt.Sprint(i), 50_000), Session: 1}))
		}
		require.NoError(t, c.Send(reconnect.Outgoing{Message: named("whole", 10)}))
		synctest.Wait()
		server.network.ResetAll(wsAddr)
		time.Sleep(time.Second)
		require.Equal(t, [][]string{{}, {"whole x 10"}}, seen.all())
		require.Len(t, receipts.all(), 6)
		for i, fate := range []reconnect.Fate{reconnect.FateUnknown, reconnect.FateDropped, reconnect.FateDropped, reconnect.FateDropped, reconnect.FateDropped, reconnect.FateWritten} {
			require.Equal(t, fate, receipts.all()[i].Fate)
		}
	})
}

// Promises 8 and 10: a peer that floods us and reads nothing causes no deadlock and no growing
// heap. The write timeout cuts it, and the limits of the outbox hold.
func TestAPeerThatFloodsAndNeverReadsIsCutOff(t *testing.T) {
	// The server floods, and never reads.
	flood := conntest.Frame{Head: conntest.Fin | conntest.TextFrame, Payload: make([]byte, 100)}.Bytes()
	withWSServer(t, func(ctx context.Context, c *websocket.Conn, r *http.Request) {
		for ctx.Err() == nil && conntest.PipeOf(ctx).Live() {
			conntest.PipeOf(ctx).Inject(conntest.ToClient, flood)
			time.Sleep(time.Millisecond)
		}
	}, func(t *testing.T, server *wsServer) {
		// The client writes with a timeout, and has a small outbox.
		server.dialer.Conn.WriteTimeout = 5 * time.Second
		o, receipts := sending(reconnect.WhenDownKeep)
		o.OnMessage = func(context.Context, reconnect.Message) {}
		o.Outbox.Messages, o.Outbox.Bytes = 10, 300_000
		c := server.ready(t, o)
		// Send for longer than two timeouts: the outbox stays within its limits.
		accepted, refused := 0, 0
		for server.now() < 12*time.Second {
			if c.Send(reconnect.Outgoing{Message: named("m", 40_000)}) == nil {
				accepted++
			} else {
				refused++
			}
			require.LessOrEqual(t, c.Stats().Queued, uint64(8), "7 that wait, and the one that is written")
			time.Sleep(100 * time.Millisecond)
		}
		// Messages were refused, the connection was cut, and reading went on.
		require.Positive(t, refused)
		require.GreaterOrEqual(t, c.Stats().Sessions, uint64(2))
		require.Greater(t, c.Stats().Received, uint64(5000), "reading went on")
		// Each message that was accepted has a receipt.
		closeAndWait(c)
		require.Len(t, receipts.all(), accepted)
	})
}

// The data of a message belongs to the Conn until OnReceipt gets it, even if the message is
// displaced while Keep looks at it.
func TestReceiptOfDisplacedMessageWaitsForKeep(t *testing.T) {
	inBubble(t, func(t *testing.T, s *scene) {
		var c *reconnect.Conn
		var receipts receiptLog
		var asked atomic.Int32
		o := &reconnect.Options{WhenDown: reconnect.WhenDownKeep, Outbox: reconnect.Outbox{
			Messages: 1, Overflow: reconnect.OutboxDropOldest,
			OnReceipt: func(ctx context.Context, r reconnect.Receipt) {
				receipts.add(ctx, r)
				copy(r.Outgoing.Data, "##") // the data is ours again
			},
			Keep: func(_ context.Context, out reconnect.Outgoing, _ error) bool {
				asked.Add(1)
				before := string(out.Data)
				queue(t, c, "n") // displaces it
				synctest.Wait()
				require.Equal(t, before, string(out.Data))
				return true
			},
		}}
		c = s.open(o)
		peer := s.wantDial().acceptHeld()
		queue(t, c, "m0")
		synctest.Wait() // m0 is being written
		queue(t, c, "m1")
		peer.Fail(errLost)
		time.Sleep(time.Millisecond)
		require.EqualValues(t, 1, asked.Load())
		require.Len(t, receipts.all(), 2)
	})
}
