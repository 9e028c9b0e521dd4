package send_test

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
	"github.com/redial-go/redial/reconnect/internal/conntests/scene"
)

// Promise 10: the limit on the count does not include messages that are being written.
func TestTheOutboxIsBoundedByCount(t *testing.T) {
	scene.InBubble(t, func(t *testing.T, s *scene.Scene) {
		o, receipts := scene.Sending(reconnect.WhenDownKeep)
		o.Outbox.Messages = 2
		c := s.Open(o)
		peer := s.WantDial().Accept()
		peer.Hold()
		scene.Queue(t, c, "a")
		synctest.Wait()
		scene.Queue(t, c, "b", "c")
		err := c.Send(reconnect.Outgoing{Message: scene.Text("d")})
		scene.WantFate(t, err, reconnect.FateDropped, 0)
		require.ErrorIs(t, err, reconnect.ErrOutboxFull)
		require.ErrorContains(t, err, "2 messages of 2 bytes wait")
		peer.Release()
		receipts.Want(t, "a: written 1", "b: written 1", "c: written 1")
		scene.Queue(t, c, "e")
	})
}

// Promise 10.
func TestTheOutboxIsBoundedByBytes(t *testing.T) {
	scene.InBubble(t, func(t *testing.T, s *scene.Scene) {
		o, _ := scene.Sending(reconnect.WhenDownKeep)
		o.Outbox.Bytes = 5
		c := s.Open(o)
		require.ErrorContains(t, c.Send(reconnect.Outgoing{Message: scene.Text("123456")}),
			"a message of 6 bytes is larger than the limit of 5")
		scene.Queue(t, c, "12", "345")
		require.ErrorIs(t, c.Send(reconnect.Outgoing{Message: scene.Text("6")}), reconnect.ErrOutboxFull)
		require.Equal(t, "12 345", scene.Written(s.WantDial().Accept()))
		scene.Queue(t, c, "67890")
	})
}

// Promise 10: at the defaults.
func TestAnOutboxHoldsSixteenMebibytesOr1024Messages(t *testing.T) {
	scene.InBubble(t, func(t *testing.T, s *scene.Scene) {
		o, _ := scene.Sending(reconnect.WhenDownKeep)
		c := s.Open(o)
		for range 1024 {
			scene.Queue(t, c, "")
		}
		require.ErrorIs(t, c.Send(reconnect.Outgoing{}), reconnect.ErrOutboxFull)
		s.WantDial().Accept()
		require.Zero(t, c.Stats().Queued)
		require.Error(t, c.Send(reconnect.Outgoing{Message: scene.Text(strings.Repeat("x", 16<<20+1))}))
		scene.Queue(t, c, strings.Repeat("x", 16<<20))
	})
}

// Promise 10: a message that Write queues needs no room, and takes none.
func TestAQueuedWriteIsNotCounted(t *testing.T) {
	scene.InBubble(t, func(t *testing.T, s *scene.Scene) {
		o, receipts := scene.Sending(reconnect.WhenDownKeep)
		o.Outbox.Messages, o.Outbox.Overflow = 1, reconnect.OutboxDropOldest
		c := s.Open(o)
		wrote := make(chan error, 1)
		go func() { wrote <- c.Write(t.Context(), scene.Text("w")) }()
		synctest.Wait()
		scene.Queue(t, c, "a", "b")
		require.Equal(t, "w b", scene.Written(s.WantDial().Accept()))
		require.NoError(t, <-wrote)
		receipts.Want(t, "a: dropped 0", "b: written 1")
	})
}

func TestTheOldestAreDisplaced(t *testing.T) {
	scene.InBubble(t, func(t *testing.T, s *scene.Scene) {
		o, receipts := scene.Sending(reconnect.WhenDownKeep)
		o.Outbox.Messages, o.Outbox.Bytes, o.Outbox.Overflow = 3, 6, reconnect.OutboxDropOldest
		c := s.Open(o)
		scene.Queue(t, c, "1", "2", "3", "4")
		receipts.Want(t, "1: dropped 0")
		scene.Queue(t, c, "5555")
		receipts.Want(t, "1: dropped 0", "2: dropped 0")
		require.ErrorIs(t, receipts.Last(t).Err, reconnect.ErrOutboxFull)
		require.ErrorIs(t, c.Send(reconnect.Outgoing{Message: scene.Text("1234567")}), reconnect.ErrOutboxFull,
			"no sacrifice makes room for it")
		require.Equal(t, "3 4 5555", scene.Written(s.WantDial().Accept()))
	})
}

func TestAMessageReplacesTheOneWithItsKey(t *testing.T) {
	scene.InBubble(t, func(t *testing.T, s *scene.Scene) {
		o, receipts := scene.Sending(reconnect.WhenDownKeep)
		o.Outbox.Messages, o.Outbox.Bytes, o.Outbox.Overflow = 2, 4, reconnect.OutboxReplaceKey
		c := s.Open(o)
		require.NoError(t, c.Send(keyed("x", "x1")))
		require.NoError(t, c.Send(keyed("y", "y1")))
		require.NoError(t, c.Send(keyed("x", "x2")), "full, but for its own key")
		receipts.Want(t, "x1: dropped 0")
		require.ErrorIs(t, receipts.Last(t).Err, reconnect.ErrReplaced)
		for _, refused := range []reconnect.Outgoing{keyed("z", "z"), keyed("x", "x33"), keyed("", "-")} {
			require.ErrorIs(t, c.Send(refused), reconnect.ErrOutboxFull)
		}
		receipts.Want(t, "x1: dropped 0")
		require.Equal(t, "y1 x2", scene.Written(s.WantDial().Accept()), "at the end of the queue")
	})
}

// A message replaces an older one with its key also while the outbox is not full, because the
// older one is of no use any more. Without a key nothing is replaced.
func TestAMessageReplacesTheOneWithItsKeyThoughThereIsRoom(t *testing.T) {
	scene.InBubble(t, func(t *testing.T, s *scene.Scene) {
		o, receipts := scene.Sending(reconnect.WhenDownKeep)
		o.Outbox.Overflow = reconnect.OutboxReplaceKey
		c := s.Open(o)
		for _, m := range []reconnect.Outgoing{keyed("x", "x1"), keyed("", "1"), keyed("", "2"), keyed("x", "x2"), keyed("x", "x3")} {
			require.NoError(t, c.Send(m))
		}
		receipts.Want(t, "x1: dropped 0", "x2: dropped 0")
		require.Equal(t, "1 2 x3", scene.Written(s.WantDial().Accept()))
	})
}

func TestAKeyMeansNothingToTheOtherPolicies(t *testing.T) {
	scene.InBubble(t, func(t *testing.T, s *scene.Scene) {
		o, _ := scene.Sending(reconnect.WhenDownKeep)
		c := s.Open(o)
		require.NoError(t, c.Send(keyed("x", "x1")))
		require.NoError(t, c.Send(keyed("x", "x2")))
		require.Equal(t, "x1 x2", scene.Written(s.WantDial().Accept()))
	})
}

// Promise 6: a message that is being written is not replaced. When it comes back from a lost
// session, a newer one with its key replaces it.
func TestTheMessageThatIsBeingWrittenIsNotReplaced(t *testing.T) {
	scene.InBubble(t, func(t *testing.T, s *scene.Scene) {
		o, receipts := scene.Sending(reconnect.WhenDownKeep)
		o.Outbox.Overflow = reconnect.OutboxReplaceKey
		c := s.Open(o)
		peer := s.WantDial().Accept()
		peer.Hold()
		again := keyed("x", "x1")
		again.Repeatable = true
		require.NoError(t, c.Send(again))
		synctest.Wait()
		peer.Fail(scene.ErrLost)
		synctest.Wait()
		require.NoError(t, c.Send(keyed("x", "x2")))
		receipts.Want(t, "x1: unknown 1")
		require.ErrorIs(t, receipts.Last(t).Err, reconnect.ErrReplaced)
		next := s.WantDial().Accept()
		next.Hold()
		require.NoError(t, c.Send(keyed("x", "x3")))
		synctest.Wait()
		require.NoError(t, c.Send(keyed("x", "x4")))
		next.Release()
		require.Equal(t, "x2 x3 x4", scene.Written(next))
	})
}

// A message that comes back from a lost session is dropped if a newer one with its key is
// queued, though it is Repeatable.
func TestAMessageThatComesBackGivesWayToANewerOneWithItsKey(t *testing.T) {
	scene.InBubble(t, func(t *testing.T, s *scene.Scene) {
		o, receipts := scene.Sending(reconnect.WhenDownKeep)
		o.Outbox.Overflow = reconnect.OutboxReplaceKey
		c := s.Open(o)
		peer := s.WantDial().Accept()
		peer.Hold()
		again := keyed("x", "x1")
		again.Repeatable = true
		require.NoError(t, c.Send(again))
		synctest.Wait()
		require.NoError(t, c.Send(keyed("x", "x2")))
		peer.Fail(scene.ErrLost)
		receipts.Want(t, "x1: unknown 1")
		require.ErrorIs(t, receipts.Last(t).Err, reconnect.ErrReplaced)
		require.Equal(t, "x2", scene.Written(s.WantDial().Accept()))
	})
}

// Promises 6 and 10: a message is dropped at the very instant of its deadline, whatever is
// before it in the queue.
func TestAMessageIsDroppedWhenItIsTooLate(t *testing.T) {
	scene.InBubble(t, func(t *testing.T, s *scene.Scene) {
		o, receipts := scene.Sending(reconnect.WhenDownKeep)
		c := s.Open(o)
		s.WantDial()
		for _, m := range []struct {
			data string
			at   time.Duration
		}{{"b", 2 * time.Second}, {"a", time.Second}, {"c", 3 * time.Second}, {"d", time.Hour}} {
			require.NoError(t, c.Send(reconnect.Outgoing{Message: scene.Text(m.data), Deadline: s.Start().Add(m.at)}))
		}
		time.Sleep(time.Second - 1)
		receipts.Want(t)
		time.Sleep(time.Nanosecond)
		receipts.Want(t, "a: dropped 0")
		require.ErrorIs(t, receipts.Last(t).Err, reconnect.ErrExpired)
		time.Sleep(time.Second)
		receipts.Want(t, "a: dropped 0", "b: dropped 0")
		time.Sleep(time.Second)
		receipts.Want(t, "a: dropped 0", "b: dropped 0", "c: dropped 0")
		time.Sleep(5*time.Minute - 3*time.Second - 1) // the default age comes before the last deadline
		require.Equal(t, uint64(1), c.Stats().Queued)
		time.Sleep(time.Nanosecond)
		receipts.Want(t, "a: dropped 0", "b: dropped 0", "c: dropped 0", "d: dropped 0")
	})
}

// Promise 6: the age of a message counts from its own Send, though the write of another one is under way.
func TestTheAgeOfAMessageCountsFromItsSend(t *testing.T) {
	for _, age := range []time.Duration{5 * time.Second, 2 * time.Minute} {
		scene.InBubble(t, func(t *testing.T, s *scene.Scene) {
			o, receipts := scene.Sending(reconnect.WhenDownKeep)
			o.Outbox.Age = age
			o.Liveness.Limit = -1
			c := s.Open(o)
			s.WantDial().Accept().Hold()
			scene.Queue(t, c, "a")
			synctest.Wait()
			time.Sleep(2 * time.Second)
			scene.Queue(t, c, "b")
			time.Sleep(age - 1)
			receipts.Want(t)
			time.Sleep(time.Nanosecond)
			receipts.Want(t, "b: dropped 0")
		})
	}
}

func TestAMessageThatIsTooLateIsRefused(t *testing.T) {
	scene.InBubble(t, func(t *testing.T, s *scene.Scene) {
		o, receipts := scene.Sending(reconnect.WhenDownKeep)
		c := s.Open(o)
		err := c.Send(reconnect.Outgoing{Message: scene.Text("a"), Deadline: s.Start()})
		scene.WantFate(t, err, reconnect.FateDropped, 0)
		require.ErrorIs(t, err, reconnect.ErrExpired)
		receipts.Want(t)
	})
}

func TestANegativeAgeIsForEver(t *testing.T) {
	scene.InBubble(t, func(t *testing.T, s *scene.Scene) {
		o, receipts := scene.Sending(reconnect.WhenDownKeep)
		o.Outbox.Age = -1
		c := s.Open(o)
		d := s.WantDial()
		require.NoError(t, c.Send(reconnect.Outgoing{
			Message:  scene.Text("a"),
			Deadline: s.Start().Add(10 * time.Second),
		}))
		scene.Queue(t, c, "b")
		time.Sleep(10 * time.Second)
		receipts.Want(t, "a: dropped 0")
		for s.Now() < time.Hour {
			d.Refuse(scene.ErrLost)
			d = s.WantDial()
		}
		require.Equal(t, "b", scene.Written(d.Accept()))
	})
}

// Promise 6: nothing is sent after its deadline, also if the write before it is stuck.
func TestNothingIsSentAfterItsDeadline(t *testing.T) {
	scene.InBubble(t, func(t *testing.T, s *scene.Scene) {
		o, receipts := scene.Sending(reconnect.WhenDownFail)
		c := s.Open(o)
		peer := s.WantDial().Accept()
		peer.Hold()
		scene.Queue(t, c, "a")
		require.NoError(t, c.Send(reconnect.Outgoing{Message: scene.Text("b"), Deadline: s.Start().Add(time.Second)}))
		time.Sleep(time.Second)
		receipts.Want(t, "b: dropped 0")
		peer.Release()
		require.Equal(t, "a", scene.Written(peer))
	})
}

// Promise 6: nothing is sent at its deadline, though the write before it ends at that very
// instant and the timer may be late.
func TestNothingIsSentAtItsDeadline(t *testing.T) {
	for range 100 {
		scene.InBubble(t, func(t *testing.T, s *scene.Scene) {
			o, receipts := scene.Sending(reconnect.WhenDownFail)
			c, err := reconnect.New(reconnect.DialFunc(func(ctx context.Context) (conn.Conn, error) {
				opened, err := s.Dial(ctx)
				return scene.SlowConn{Conn: opened}, err
			}), o)
			require.NoError(t, err)
			defer scene.CloseAndWait(c)
			peer := s.WantDial().Accept()
			scene.Queue(t, c, "a")
			synctest.Wait()
			require.NoError(t, c.Send(reconnect.Outgoing{
				Message:  scene.Text("b"),
				Deadline: s.Start().Add(time.Second),
			}))
			time.Sleep(3 * time.Second)
			require.Equal(t, "a", scene.Written(peer))
			require.Len(t, receipts.All(), 2)
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
			scene.InBubble(t, func(t *testing.T, s *scene.Scene) {
				o, receipts := scene.Sending(reconnect.WhenDownKeep)
				c := s.Open(o)
				peer := s.WantDial().Accept()
				peer.Hold()
				require.NoError(t, c.Send(reconnect.Outgoing{
					Message:    scene.Text("a"),
					Repeatable: true,
					Deadline:   s.Start().Add(test.deadline),
				}))
				synctest.Wait()
				require.NoError(t, c.Send(reconnect.Outgoing{
					Message:  scene.Text("b"),
					Deadline: s.Start().Add(time.Second),
				}))
				time.Sleep(test.lost) // the deadline of b has passed
				peer.Fail(scene.ErrLost)
				synctest.Wait()
				time.Sleep(test.want - test.lost)
				receipts.Want(t, "b: dropped 0", "a: unknown 1")
				require.ErrorIs(t, receipts.Last(t).Err, reconnect.ErrExpired)
			})
		})
	}
}

// Promise 6: no write begins after the deadline of its message. A write that has begun is not
// cut for it.
func TestADeadlineBoundsWhenAWriteBegins(t *testing.T) {
	scene.InBubble(t, func(t *testing.T, s *scene.Scene) {
		o, receipts := scene.Sending(reconnect.WhenDownKeep)
		c := s.Open(o)
		peer := s.WantDial().Accept()
		peer.Hold()
		valid := s.Start().Add(time.Second)
		for _, data := range []string{"a", "b"} {
			require.NoError(t, c.Send(reconnect.Outgoing{Message: scene.Text(data), Deadline: valid}))
		}
		time.Sleep(9 * time.Second)
		receipts.Want(t, "b: dropped 0")
		require.ErrorIs(t, receipts.Last(t).Err, reconnect.ErrExpired)
		peer.Release()
		receipts.Want(t, "b: dropped 0", "a: written 1")
		a, b := receipts.Last(t), receipts.All()[0]
		require.Equal(t, s.Start(), a.Began, "in time")
		require.Equal(t, s.Start().Add(9*time.Second), a.Ended)
		require.Zero(t, b.Began)
	})
}

// Promise 6: a message for one session goes by no other.
func TestAPinnedMessageGoesByItsSessionOnly(t *testing.T) {
	scene.InBubble(t, func(t *testing.T, s *scene.Scene) {
		o, receipts := scene.Sending(reconnect.WhenDownKeep)
		c := s.Open(o)
		peer := s.WantDial().Accept()
		require.NoError(t, c.Send(pinned(1, "a1")))
		require.Equal(t, "a1", scene.Written(peer))
		scene.SendAndLose(t, c, peer, pinned(1, "a2"), pinned(1, "a3"), scene.Out("b"))
		receipts.Want(t, "a1: written 1", "a2: unknown 1", "a3: dropped 0")
		require.ErrorIs(t, receipts.Last(t).Err, reconnect.ErrSessionLost)
		err := c.Send(pinned(1, "a4"))
		scene.WantFate(t, err, reconnect.FateDropped, 0)
		require.ErrorIs(t, err, reconnect.ErrSessionLost)
		require.Equal(t, "b", scene.Written(s.WantDial().Accept()))
		require.ErrorContains(t, c.Send(pinned(1, "a5")), "session 1")
		require.ErrorIs(t, c.Send(pinned(3, "c")), reconnect.ErrSessionLost, "nor by one that is to come")
		require.NoError(t, c.Send(pinned(2, "d")))
	})
}

// A message for one session is dropped with it, also if its write did not begin or the session
// never was ready.
func TestAPinnedMessageDoesNotOutliveItsSession(t *testing.T) {
	scene.InBubble(t, func(t *testing.T, s *scene.Scene) {
		o, receipts := scene.Sending(reconnect.WhenDownKeep)
		var c *reconnect.Conn
		o.OnSession = refuseFirst
		o.Run.Trace = &reconnect.Trace{SessionStart: func(n *reconnect.Session) {
			if n.Number == 1 {
				require.NoError(t, c.Send(pinned(1, "a")))
			}
		}}
		c = s.Open(o)
		s.WantDial().Accept()
		receipts.Want(t, "a: dropped 0")
		s.WantDial().Accept().FailWrite(scene.ErrNotBegun)
		require.NoError(t, c.Send(pinned(2, "b")))
		receipts.Want(t, "a: dropped 0", "b: dropped 2")
		require.Empty(t, scene.Written(s.WantDial().Accept()))
	})
}

// Promise 6: with Session set, the parts of one whole go by one session or not at all.
func TestPartsThatArePinnedDoNotGoByTheNextSession(t *testing.T) {
	seen := new(scene.MessageLog)
	scene.WithWSServer(t, seen.Serve, func(t *testing.T, server *scene.WSServer) {
		o, receipts := scene.Sending(reconnect.WhenDownKeep)
		c := server.Ready(t, o)
		server.Pipe(t).Window(conntest.ToServer, 1000)
		server.Pipe(t).Stall(conntest.ToServer)
		for i := range 5 {
			require.NoError(t, c.Send(reconnect.Outgoing{Message: scene.Named(fmt.Sprint(i), 50_000), Session: 1}))
		}
		require.NoError(t, c.Send(reconnect.Outgoing{Message: scene.Named("whole", 10)}))
		synctest.Wait()
		server.Network.ResetAll(scene.WSAddr)
		time.Sleep(time.Second)
		require.Equal(t, [][]string{{}, {"whole x 10"}}, seen.All())
		require.Len(t, receipts.All(), 6)
		for i, fate := range []reconnect.Fate{reconnect.FateUnknown, reconnect.FateDropped, reconnect.FateDropped, reconnect.FateDropped, reconnect.FateDropped, reconnect.FateWritten} {
			require.Equal(t, fate, receipts.All()[i].Fate)
		}
	})
}

// Promises 8 and 10: a peer that floods us and reads nothing causes no deadlock and no growing
// heap. The write timeout cuts it, and the limits of the outbox hold.
func TestAPeerThatFloodsAndNeverReadsIsCutOff(t *testing.T) {
	// The server floods, and never reads.
	flood := conntest.Frame{Head: conntest.Fin | conntest.TextFrame, Payload: make([]byte, 100)}.Bytes()
	scene.WithWSServer(t, func(ctx context.Context, c *websocket.Conn, r *http.Request) {
		for ctx.Err() == nil && conntest.PipeOf(ctx).Live() {
			conntest.PipeOf(ctx).Inject(conntest.ToClient, flood)
			time.Sleep(time.Millisecond)
		}
	}, func(t *testing.T, server *scene.WSServer) {
		// The client writes with a timeout, and has a small outbox.
		server.Dialer.Conn.WriteTimeout = 5 * time.Second
		o, receipts := scene.Sending(reconnect.WhenDownKeep)
		o.OnMessage = func(context.Context, reconnect.Message) {}
		o.Outbox.Messages, o.Outbox.Bytes = 10, 300_000
		c := server.Ready(t, o)
		// Send for longer than two timeouts: the outbox stays within its limits.
		accepted, refused := 0, 0
		for server.Now() < 12*time.Second {
			if c.Send(reconnect.Outgoing{Message: scene.Named("m", 40_000)}) == nil {
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
		scene.CloseAndWait(c)
		require.Len(t, receipts.All(), accepted)
	})
}

// The data of a message belongs to the Conn until OnReceipt gets it, even if the message is
// displaced while Keep looks at it.
func TestReceiptOfDisplacedMessageWaitsForKeep(t *testing.T) {
	scene.InBubble(t, func(t *testing.T, s *scene.Scene) {
		var c *reconnect.Conn
		var receipts scene.ReceiptLog
		var asked atomic.Int32
		o := &reconnect.Options{WhenDown: reconnect.WhenDownKeep, Outbox: reconnect.Outbox{
			Messages: 1, Overflow: reconnect.OutboxDropOldest,
			OnReceipt: func(ctx context.Context, r reconnect.Receipt) {
				receipts.Add(ctx, r)
				copy(r.Outgoing.Data, "##") // the data is ours again
			},
			Keep: func(_ context.Context, out reconnect.Outgoing, _ error) bool {
				asked.Add(1)
				before := string(out.Data)
				synctest.Wait()        // m0 has its receipt, which takes room
				scene.Queue(t, c, "n") // displaces it
				synctest.Wait()
				require.Equal(t, before, string(out.Data))
				return true
			},
		}}
		c = s.Open(o)
		peer := s.WantDial().AcceptHeld()
		scene.Queue(t, c, "m0")
		synctest.Wait() // m0 is being written
		scene.Queue(t, c, "m1")
		peer.Fail(scene.ErrLost)
		time.Sleep(time.Millisecond)
		require.EqualValues(t, 1, asked.Load())
		require.Len(t, receipts.All(), 2)
	})
}
