package receive_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"runtime"
	"slices"
	"strconv"
	"sync"
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

// Promise 7.
func TestTheContextOfAReadEndsOnlyThatRead(t *testing.T) {
	scene.InBubble(t, func(t *testing.T, s *scene.Scene) {
		c := s.Open(nil)
		peer := s.WantDial().Accept()
		for range 3 {
			ctx, cancel := context.WithTimeoutCause(t.Context(), time.Second, scene.ErrLost)
			_, err := c.Read(ctx, nil)
			require.ErrorIs(t, err, scene.ErrLost)
			cancel()
		}
		require.False(t, peer.Closed())
		scene.Deliver(peer, 1, 1)
		scene.WantMessage(t, c, 1, "1")
	})
}

// Read copies into the caller's buffer. If that is too small, Read makes one of the exact size.
func TestReadUsesTheBufferOfItsCaller(t *testing.T) {
	scene.InBubble(t, func(t *testing.T, s *scene.Scene) {
		c, peer := scene.ReadInbox(t, s, reconnect.Inbox{})
		scene.Deliver(peer, 1, 1)
		peer.Deliver(scene.Text("longer than four"))
		buf := make([]byte, 4)
		m, err := c.Read(t.Context(), buf)
		require.NoError(t, err)
		require.Same(t, &buf[0], &m.Data[0])
		m, err = c.Read(t.Context(), buf)
		require.NoError(t, err)
		require.Equal(t, len(m.Data), cap(m.Data))
	})
}

// The data of a message belongs to its reader, whatever comes later and however the others are
// read: into a buffer, or into slices of the exact size.
func TestTheDataOfAMessageIsItsReadersAlone(t *testing.T) {
	sizes := []int{20, 125, 126, 4096, 33_000, 70_000}
	const messages = 300
	size := func(i int) int { return sizes[i*7%len(sizes)] }
	feed := func(ctx context.Context, c *websocket.Conn, _ *http.Request) {
		for i := range messages {
			if c.Write(ctx, websocket.MessageText, scene.Named(fmt.Sprint(i), size(i)).Data) != nil {
				return
			}
		}
		<-ctx.Done()
	}
	scene.WithWSServer(t, feed, func(t *testing.T, server *scene.WSServer) {
		c := server.Ready(t, nil)
		kept := make([][]byte, messages)
		for i := range kept {
			var buf []byte
			if i/10%2 == 1 { // in turns, for ten messages each
				buf = make([]byte, 5000)
			}
			m, err := c.Read(t.Context(), buf)
			require.NoError(t, err)
			if len(m.Data) > len(buf) {
				require.Equal(t, len(m.Data), cap(m.Data))
			}
			kept[i] = m.Data
		}
		for i, data := range kept {
			require.Equal(t, string(scene.Named(fmt.Sprint(i), size(i)).Data), string(data))
		}
	})
}

// Promise 11: a Read that waits when Shutdown begins gets the seam first, and then the end.
func TestAReadThatWaitsAcrossAShutdownEndsWithIt(t *testing.T) {
	scene.InBubble(t, func(t *testing.T, s *scene.Scene) {
		c := s.Open(nil)
		s.WantDial().Accept()
		read := make(chan error, 1)
		go func() { _, err := c.Read(context.Background(), nil); read <- err }()
		synctest.Wait()
		require.NoError(t, c.Shutdown(t.Context()))
		var seam *reconnect.Seam
		require.ErrorAs(t, <-read, &seam, "first that the session has ended")
		_, err := c.Read(context.Background(), nil)
		require.ErrorIs(t, err, net.ErrClosed)
	})
}

// Promise 11: after Close, Read returns no message, though some were there.
func TestNoMessageComesFromReadAfterClose(t *testing.T) {
	scene.InBubble(t, func(t *testing.T, s *scene.Scene) {
		c := s.Open(nil)
		scene.Deliver(s.WantDial().Accept(), 1, 3)
		c.Close()
		m, err := c.Read(t.Context(), nil)
		require.Error(t, err, "got %q", m.Data)
	})
}

// Promise 5.
func TestMessagesGoesOnAfterASeam(t *testing.T) {
	scene.InBubble(t, func(t *testing.T, s *scene.Scene) {
		o := scene.WithPolicy(scene.Every(time.Second))
		c := s.Open(&o)
		// Two sessions, with a message each.
		go func() {
			peer := s.WantDial().Accept()
			peer.Deliver(scene.Text("a"))
			synctest.Wait()
			peer.Fail(scene.ErrLost)
			s.WantDial().Accept().Deliver(scene.Text("b"))
		}()
		// Read until the Conn is closed after the second message.
		var got []string
		for m, err := range c.Messages(t.Context()) {
			var seam *reconnect.Seam
			switch {
			case errors.As(err, &seam):
				got = append(got, "seam")
			case err != nil:
				got = append(got, err.Error())
			default:
				got = append(got, string(m.Data))
			}
			if string(m.Data) == "b" {
				c.Close() // a Read that is under way meanwhile could still get the seam after b
			}
		}
		// The seam is in its place, and the end comes last.
		require.Equal(t, []string{"a", "seam", "b", net.ErrClosed.Error()}, got)
	})
}

// Promise 7: the end of its context also frees a Read that waits for its turn.
func TestReadersTakeTurns(t *testing.T) {
	scene.InBubble(t, func(t *testing.T, s *scene.Scene) {
		c := s.Open(nil)
		peer := s.WantDial().Accept()
		got := make(chan string, 3)
		for range 2 {
			go func() {
				m, err := c.Read(t.Context(), nil)
				require.NoError(t, err)
				got <- string(m.Data)
			}()
		}
		synctest.Wait()
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		_, err := c.Read(ctx, nil)
		require.ErrorIs(t, err, context.DeadlineExceeded)
		scene.Deliver(peer, 1, 2)
		require.ElementsMatch(t, []string{"1", "2"}, []string{<-got, <-got})
	})
}

// A reader that comes back at once may overtake one that waits, but only four times. So while
// one waits, each of the others gets five messages at most.
func TestNoReaderStarves(t *testing.T) {
	const readers, messages = 4, 1000
	scene.InBubble(t, func(t *testing.T, s *scene.Scene) {
		c := s.Open(nil)
		peer := s.WantDial().Accept()
		got := make(chan int, 1)
		for i := range readers {
			go func() { // ends with c
				for range c.Messages(context.Background()) {
					select {
					case got <- i:
					case <-c.Done(): // it was the end of the stream
					}
				}
			}()
		}
		synctest.Wait() // one reads, and the others wait
		var last [readers]int
		for n := 1; n <= messages; n++ {
			scene.Deliver(peer, n, n)
			last[<-got] = n
			for i, at := range last {
				require.LessOrEqual(t, n-at, 5*(readers-1), "reader %d waits since message %d", i, at)
			}
		}
	})
}

// A reader that reads once and does not come back leaves the next message to the others.
func TestTwoMessagesEndTheWaitOfTwoReaders(t *testing.T) {
	scene.InBubble(t, func(t *testing.T, s *scene.Scene) {
		c := s.Open(nil)
		peer := s.WantDial().Accept()
		got := make(chan string, 2)
		for range cap(got) {
			go func() {
				m, _ := c.Read(t.Context(), nil)
				got <- string(m.Data)
			}()
		}
		synctest.Wait()
		peer.Deliver(scene.Text("1"), scene.Text("2"))
		synctest.Wait()
		require.Len(t, got, 2)
		require.ElementsMatch(t, []string{"1", "2"}, []string{<-got, <-got})
	})
}

// Promises 5 and 7, for goroutines that read at the same time and whose contexts end meanwhile:
// no message is lost or doubled, and each reader gets its messages in order.
func TestReadersShareTheStream(t *testing.T) {
	const readers, sessions, messages = 5, 50, 200
	scene.InBubble(t, func(t *testing.T, s *scene.Scene) {
		// Start the readers, each with a limit of its own.
		o := scene.WithPolicy(scene.Every(3 * time.Millisecond))
		c := s.Open(&o)
		shares := make([]share, readers)
		var all sync.WaitGroup
		for i := range shares {
			all.Go(func() { shares[i].read(c, time.Duration(i+1)*time.Millisecond) })
		}
		// Many sessions follow one another, each with many messages.
		var want []int
		for n := range sessions * messages {
			want = append(want, n)
		}
		for n := range sessions {
			peer := s.WantDial().Accept()
			scene.Deliver(peer, n*messages, (n+1)*messages-1)
			peer.Fail(scene.ErrLost)
			synctest.Wait()
		}
		// The readers end with the Conn.
		scene.CloseAndWait(c)
		all.Wait()
		// Together they got each message once and each seam once, and each of them in order.
		var whole share
		for _, share := range shares {
			require.True(t, slices.IsSorted(share.messages))
			whole.add(share)
		}
		slices.Sort(whole.messages)
		require.Equal(t, want, whole.messages)
		require.Equal(t, sessions, whole.seams)
		require.NotZero(t, whole.cancelled)
	})
}

// share is what one of several readers got.
type share struct {
	messages         []int
	seams, cancelled int
}

// read reads until c ends, for no longer than limit at a time. The Read after each message is
// cancelled while it runs.
func (s *share) read(c *reconnect.Conn, limit time.Duration) {
	for again := false; ; {
		ctx, cancel := context.WithTimeout(context.Background(), limit)
		if again {
			go cancel()
		}
		m, err := c.Read(ctx, nil)
		cancel()
		_, seam := errors.AsType[*reconnect.Seam](err)
		switch again = err == nil; {
		case err == nil:
			n, _ := strconv.Atoi(string(m.Data))
			s.messages = append(s.messages, n)
		case seam:
			s.seams++
		case errors.Is(err, net.ErrClosed):
			return
		default:
			s.cancelled++
		}
	}
}

func (s *share) add(more share) {
	s.messages = append(s.messages, more.messages...)
	s.seams += more.seams
	s.cancelled += more.cancelled
}

// Promise 11: after Close, OnMessage gets no message, though some were there.
func TestNoMessageComesAfterCloseInTheHandler(t *testing.T) {
	scene.InBubble(t, func(t *testing.T, s *scene.Scene) {
		var c *reconnect.Conn
		seen := 0
		c = s.Open(&reconnect.Options{OnMessage: func(context.Context, reconnect.Message) { seen++; c.Close() }})
		s.WantDial().Accept().Deliver(scene.Text("1"), scene.Text("2"), scene.Text("3"))
		<-c.Done()
		require.Equal(t, 1, seen)
	})
}

// Promise 11: the same for a message that waits while another session is in OnMessage. Shutdown leaves nothing out that came before.
func TestNoMessageComesAfterCloseFromTheOtherSession(t *testing.T) {
	for want, end := range map[int]func(*reconnect.Conn){
		1: func(c *reconnect.Conn) { c.Close() },
		2: func(c *reconnect.Conn) { c.Shutdown(context.Background()) },
	} {
		scene.InBubble(t, func(t *testing.T, s *scene.Scene) {
			seen := 0
			o := scene.Rotating(reconnect.OverlapMix)
			o.OnMessage = func(context.Context, reconnect.Message) { seen++; time.Sleep(10 * time.Second) }
			c, old, next := scene.Overlapping(s, &o)
			scene.Deliver(next, 1, 1)
			scene.Deliver(old, 2, 2)
			require.EqualValues(t, 2, c.Stats().Received)
			end(c)
			<-c.Done()
			require.Equal(t, want, seen)
		})
	}
}

// Promise 11: after a Close in Receive of a layer neither the layer nor OnMessage gets another message.
func TestNoMessageComesAfterCloseInALayer(t *testing.T) {
	for _, push := range []bool{true, false} {
		scene.InBubble(t, func(t *testing.T, s *scene.Scene) {
			var c *reconnect.Conn
			var received, seen int
			o := reconnect.Options{Layers: []*reconnect.Layer{{Receive: func(reconnect.Message) bool { received++; c.Close(); return false }}}}
			if push {
				o.OnMessage = func(context.Context, reconnect.Message) { seen++ }
			}
			c = s.Open(&o)
			s.WantDial().Accept().Deliver(scene.Text("1"), scene.Text("2"), scene.Text("3"))
			<-c.Done()
			require.Equal(t, []int{1, 0}, []int{received, seen}, "push: %t", push)
		})
	}
}

// Promise 11: the same for what OnSession delivers after Close, of the first session and of one that replaces another.
func TestNothingIsDeliveredAfterClose(t *testing.T) {
	for _, last := range []uint64{1, 2} {
		scene.InBubble(t, func(t *testing.T, s *scene.Scene) {
			var c *reconnect.Conn
			var err error
			received, seen := 0, 0
			o := scene.Rotating(reconnect.OverlapHold)
			o.Layers = []*reconnect.Layer{{Receive: func(reconnect.Message) bool { received++; return true }}}
			o.OnMessage = func(context.Context, reconnect.Message) { seen++ }
			o.OnSession = func(_ context.Context, opening *reconnect.Opening) error {
				if opening.Session == last {
					c.Close()
					err = opening.Deliver(scene.Text("1"))
				}
				return err
			}
			c = s.Open(&o)
			s.WantDial().Accept()
			if last == 2 {
				c.Rotate(1, reconnect.Advice{})
				s.WantDial().Accept()
			}
			<-c.Done()
			require.Equal(t, net.ErrClosed, err)
			require.Equal(t, []int{0, 0}, []int{received, seen})
			require.Equal(t, last-1, c.Stats().Lost, "the session of Deliver was never ready")
		})
	}
}

// Promise 11: the context of OnMessage ends with its session, though OnMessage still works.
func TestTheContextOfOnMessageEndsWithItsSession(t *testing.T) {
	scene.InBubble(t, func(t *testing.T, s *scene.Scene) {
		ended := make(chan error, 1)
		o := scene.WithPolicy(scene.Every(time.Second))
		o.OnMessage = func(ctx context.Context, _ reconnect.Message) { <-ctx.Done(); ended <- ctx.Err() }
		c := s.Open(&o)
		s.WantDial().Accept().Deliver(scene.Text("x"))
		synctest.Wait()
		require.Empty(t, ended)
		c.Redial(1, scene.ErrLost)
		require.Equal(t, context.Canceled, <-ended)
		require.Equal(t, time.Second, s.WantDial().At)
	})
}

// Promise 8: when the handler has returned and nothing more is at hand, the supervisor waits for
// the peer again, whose silence counts.
func TestSilenceAfterABurstForTheHandlerIsNoticed(t *testing.T) {
	hello := conntest.Frame{Head: conntest.Fin | conntest.TextFrame, Payload: []byte("hello")}
	scene.WithWSServer(t, conntest.NeverRead, func(t *testing.T, server *scene.WSServer) {
		seen := 0
		o := scene.WithPolicy(scene.Every(time.Hour))
		o.Liveness.Limit = 30 * time.Second
		o.OnMessage = func(context.Context, reconnect.Message) { seen++; time.Sleep(time.Second) }
		c := server.Ready(t, &o)
		start := server.Now()
		server.Pipe(t).Inject(conntest.ToClient, bytes.Repeat(hello.Bytes(), 3))
		ctx, cancel := context.WithTimeout(t.Context(), time.Hour)
		defer cancel()
		require.NoError(t, c.Await(ctx, reconnect.StateWaiting))
		require.ErrorIs(t, c.Status().Err, reconnect.ErrSilent)
		require.Equal(t, 3, seen)
		require.Equal(t, 30*time.Second, server.Now()-start)
	})
}

// The data of a message belongs to OnMessage only until it returns. conntest.Poison shows a
// mistake there.
func TestPoisonFindsAHandlerThatKeepsItsMessage(t *testing.T) {
	for name, fake := range map[string]conntest.FakeOptions{"Conn": {}, "Transport": {Transport: true}} {
		t.Run(name, func(t *testing.T) {
			scene.InBubble(t, func(t *testing.T, s *scene.Scene) {
				s.Fake = fake
				var kept []byte
				var seen scene.Notes
				s.Open(&reconnect.Options{OnMessage: func(_ context.Context, m reconnect.Message) {
					if kept == nil {
						kept = m.Data
					}
					seen.Add(string(m.Data))
				}})
				s.WantDial().Accept().Deliver(scene.Text("kept"), scene.Text("b")) // accept poisons
				synctest.Wait()
				require.Equal(t, []string{"kept", "b"}, seen.All(), "a handler that does not keep them reads them well")
				require.Equal(t, []byte("\xDB\xDB\xDB"), kept[1:])
			})
		})
	}
}

func TestDiscardKeepsNothingAndStaysAlive(t *testing.T) {
	scene.InBubble(t, func(t *testing.T, s *scene.Scene) {
		c, peer := scene.ReadInbox(t, s, reconnect.Inbox{Overflow: reconnect.InboxDiscard})
		scene.Deliver(peer, 1, 1000)
		require.Equal(t, uint64(1000), c.Stats().Received)
		_, err := c.Read(t.Context(), nil)
		require.ErrorContains(t, err, "discards")
	})
}

// A full inbox does not keep a connection that was cut from being replaced.
func TestABlockedInboxNoticesThatTheConnectionWasCut(t *testing.T) {
	scene.InBubble(t, func(t *testing.T, s *scene.Scene) {
		c, peer := scene.ReadInbox(t, s, reconnect.Inbox{Messages: 2})
		scene.Deliver(peer, 1, 5)
		peer.FailWrite(scene.ErrLost)
		require.Error(t, c.Write(t.Context(), scene.Text("x")))
		s.WantDial().Accept()
		require.Equal(t, uint64(2), c.Status().Session)
		scene.WantMessage(t, c, 1, "1")
		scene.WantMessage(t, c, 1, "2")
		require.ErrorIs(t, scene.WantSeam(t, c).Cause, scene.ErrLost)
	})
}

// Promise 10: one large message does not cost memory for ever.
func TestALargeBufferIsNotKept(t *testing.T) {
	for name, o := range map[string]*reconnect.Options{
		"push":    {OnMessage: func(context.Context, reconnect.Message) {}},
		"pull":    {Inbox: reconnect.Inbox{Overflow: reconnect.InboxDropOldest, Messages: 1}},
		"discard": {Inbox: reconnect.Inbox{Overflow: reconnect.InboxDiscard}},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				m := &bufferMeter{Fake: conntest.NewFake(nil)}
				c, err := reconnect.New(reconnect.DialFunc(func(context.Context) (conn.Conn, error) { return m, nil }), o)
				require.NoError(t, err)
				defer scene.CloseAndWait(c)
				m.Deliver(conn.Message{Type: conn.Binary, Data: make([]byte, 1<<20)})
				scene.Deliver(m.Fake, 1, 20)
				require.LessOrEqual(t, m.largest, 64<<10)
			})
		})
	}
}

// bufferMeter is a connection that notes the largest buffer that Read got.
type bufferMeter struct {
	*conntest.Fake
	largest int
}

func (m *bufferMeter) Read(buf []byte) (conn.Message, error) {
	m.largest = max(m.largest, cap(buf))
	return m.Fake.Read(buf)
}

// Promise 10: a message without an end costs no more memory than the largest message that is
// allowed.
func TestAnEndlessMessageCostsNoMemory(t *testing.T) {
	const limit, sent = 64 << 10, 256 << 20
	scene.WithWSServer(t, nil, func(t *testing.T, server *scene.WSServer) {
		server.Dialer.Conn.ReadLimit = limit
		server.Next(server.AcceptWith(func(ctx context.Context, _ *websocket.Conn, _ *http.Request) {
			pipe := conntest.PipeOf(ctx)
			pipe.Inject(conntest.ToClient, conntest.Frame{Head: conntest.TextFrame}.Bytes())
			data := conntest.Frame{Payload: make([]byte, 1000)}.Bytes()
			for written := 0; written < sent; written += len(data) {
				if _, err := pipe.Server().Write(data); err != nil {
					return
				}
			}
		}))
		o := scene.WithPolicy(scene.Every(time.Hour))
		var before, after runtime.MemStats
		runtime.ReadMemStats(&before)
		c := server.Open(t, &o)
		require.NoError(t, c.Await(t.Context(), reconnect.StateWaiting))
		runtime.ReadMemStats(&after)
		require.ErrorAs(t, c.Status().Err, new(*conn.TooBigError))
		require.Less(t, after.TotalAlloc-before.TotalAlloc, uint64(64*limit), "bytes allocated, by the server too")
	})
}

func TestCancelEndsLoopOfSlowReader(t *testing.T) {
	scene.InBubble(t, func(t *testing.T, s *scene.Scene) {
		c := s.Open(nil)
		peer := s.WantDial().Accept()
		scene.Deliver(peer, 1, 1)
		ctx, cancel := context.WithCancel(t.Context())
		defer cancel()
		read := 0
		for _, err := range c.Messages(ctx) {
			if err != nil {
				require.ErrorIs(t, err, context.Canceled)
				break
			}
			require.NoError(t, ctx.Err(), "message %d after the cancel", read)
			if read++; read == 10 {
				cancel()
			}
			scene.Deliver(peer, 1, 2) // the feed is faster than its reader, so that the inbox is never empty
		}
		require.Equal(t, 10, read)
		require.NotZero(t, c.Stats().Unread)
	})
}

func TestReadOfDoneContextTakesNothing(t *testing.T) {
	scene.InBubble(t, func(t *testing.T, s *scene.Scene) {
		c := s.Open(nil)
		peer := s.WantDial().Accept()
		scene.Deliver(peer, 1, 1)
		ctx, cancel := context.WithCancelCause(t.Context())
		cancel(scene.ErrLost)
		_, err := c.Read(ctx, nil)
		require.Equal(t, scene.ErrLost, err)
		scene.WantMessage(t, c, 1, "1")
	})
}

func TestCloseEndsReadAfterShutdown(t *testing.T) {
	scene.InBubble(t, func(t *testing.T, s *scene.Scene) {
		release := make(chan struct{})
		o := &reconnect.Options{}
		o.Run.Trace = &reconnect.Trace{SessionDone: func(reconnect.SessionDone) { <-release }}
		c := s.Open(o)
		defer close(release)
		s.WantDial().Accept()
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		require.ErrorIs(t, c.Shutdown(ctx), context.DeadlineExceeded) // SessionDone holds up the end
		scene.WantSeam(t, c)
		read := make(chan error, 1)
		go func() {
			_, err := c.Read(context.Background(), nil)
			read <- err
		}()
		synctest.Wait()
		require.Empty(t, read)
		c.Close()
		synctest.Wait()
		require.Len(t, read, 1)
		require.ErrorIs(t, <-read, net.ErrClosed)
	})
}
