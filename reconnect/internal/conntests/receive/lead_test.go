package receive_test

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/coder/websocket"
	"github.com/stretchr/testify/require"

	"github.com/redial-go/redial/conn/conntest"
	"github.com/redial-go/redial/reconnect"
	"github.com/redial-go/redial/reconnect/internal/conntests/scene"
)

func TestAReaderThatWaitsForEachMessageReadsTheConnection(t *testing.T) {
	scene.WithReader(t, nil, func(
		t *testing.T, c *reconnect.Conn, _ *scene.WSServer, whole *atomic.Int32, ask func(string),
	) {
		before, received := whole.Load(), c.Stats().Received
		for i := range 100 {
			ask(fmt.Sprint(i))
		}
		require.EqualValues(t, 100, whole.Load()-before)
		require.EqualValues(t, 100, c.Stats().Received-received)
	})
}

// A message that the reader reads itself is a sign of life for Stall.
func TestWhatTheReaderReadsEndsNoStall(t *testing.T) {
	o := &reconnect.Options{Stall: reconnect.Stall{Limit: time.Second}}
	scene.WithReader(t, o, func(
		t *testing.T, c *reconnect.Conn, _ *scene.WSServer, whole *atomic.Int32, _ func(string),
	) {
		before := whole.Load()
		buf := make([]byte, 100)
		for range 10 {
			send := time.AfterFunc(500*time.Millisecond, func() { c.Write(context.Background(), scene.Text("hello")) })
			_, err := c.Read(t.Context(), buf)
			require.NoError(t, err)
			send.Stop()
		}
		require.EqualValues(t, 10, whole.Load()-before)
	})
}

// With OverlapMix the reader gets a message of the next session while it reads the old one.
func TestAReaderLearnsOfWhatIsPutBesideTheConnectionThatItReads(t *testing.T) {
	o := &reconnect.Options{Rotate: reconnect.Rotation{Overlap: reconnect.OverlapMix, Drain: time.Minute}}
	scene.WithReader(t, o, func(t *testing.T, c *reconnect.Conn, s *scene.WSServer, _ *atomic.Int32, _ func(string)) {
		read := make(chan reconnect.Message, 1)
		go func() {
			m, _ := c.Read(t.Context(), nil)
			read <- m
		}()
		synctest.Wait()
		c.Rotate(1, reconnect.Advice{})
		synctest.Wait()
		start := s.Now()
		require.NoError(t, c.Write(t.Context(), scene.Text("hello")))
		require.EqualValues(t, 2, (<-read).Session)
		require.Less(t, s.Now()-start, time.Second)
	})
}

// A layer gets each message before the reader.
func TestWithALayerTheSupervisorReads(t *testing.T) {
	scene.WithWSServer(t, scene.Echo, func(t *testing.T, s *scene.WSServer) {
		received := 0
		c := s.Ready(t, &reconnect.Options{Layers: []*reconnect.Layer{{
			Receive: func(reconnect.Message) bool { received++; return false },
		}}})
		for i := range 20 {
			require.NoError(t, c.Write(t.Context(), scene.Text("hello")))
			_, err := c.Read(t.Context(), nil)
			require.NoError(t, err)
			require.Equal(t, i+1, received)
		}
	})
}

// While the reader is away the supervisor reads, after two leases at most: it answers pings, and fills the inbox.
func TestTheSupervisorReadsWhileTheReaderIsAway(t *testing.T) {
	scene.WithReader(t, nil, func(
		t *testing.T, c *reconnect.Conn, s *scene.WSServer, whole *atomic.Int32, _ func(string),
	) {
		start := s.Now()
		require.NoError(t, s.Conns()[0].Ping(t.Context()))
		require.LessOrEqual(t, s.Now()-start, 20*time.Millisecond)
		for range 5 {
			require.NoError(t, c.Write(t.Context(), scene.Text("hello")))
		}
		synctest.Wait()
		require.EqualValues(t, 5, c.Stats().Unread)
		before := whole.Load()
		for range 5 {
			_, err := c.Read(t.Context(), nil)
			require.NoError(t, err)
		}
		require.Equal(t, before, whole.Load())
	})
}

// A reader that comes back late each time does not get the turn each time.
func TestASlowReaderLeavesTheConnectionToTheSupervisor(t *testing.T) {
	scene.WithReader(t, nil, func(
		t *testing.T, c *reconnect.Conn, _ *scene.WSServer, whole *atomic.Int32, ask func(string),
	) {
		before := whole.Load()
		for i := range 60 {
			time.Sleep(50 * time.Millisecond)
			ask(fmt.Sprint(i))
		}
		require.LessOrEqual(t, whole.Load()-before, int32(2))
	})
}

// A burst is put into the inbox, which has limits.
func TestABurstIsPutIntoTheInbox(t *testing.T) {
	o := &reconnect.Options{Inbox: reconnect.Inbox{Messages: 10, Overflow: reconnect.InboxDropOldest}}
	scene.WithReader(t, o, func(t *testing.T, c *reconnect.Conn, s *scene.WSServer, _ *atomic.Int32, _ func(string)) {
		for i := range 100 {
			require.NoError(t, s.Conns()[0].Write(t.Context(), websocket.MessageText, fmt.Append(nil, i)))
		}
		m, err := c.Read(t.Context(), nil)
		require.NoError(t, err)
		require.Equal(t, "0", string(m.Data))
		start := s.Now()
		synctest.Wait()
		require.EqualValues(t, 10, c.Stats().Unread)
		require.Equal(t, start, s.Now(), "the supervisor reads at once")
		seam := scene.WantSeam(t, c)
		require.Equal(t, 89, seam.Dropped)
		scene.WantMessage(t, c, 1, "90")
	})
}

// A reader that takes a burst as fast as it comes reads it itself, if the inbox drops nothing.
func TestAFastReaderReadsABurstItself(t *testing.T) {
	scene.WithReader(t, nil, func(
		t *testing.T, c *reconnect.Conn, s *scene.WSServer, whole *atomic.Int32, _ func(string),
	) {
		before := whole.Load()
		burst(t, c, s, 0)
		require.EqualValues(t, 50, whole.Load()-before)
	})
}

// A slow one leaves the rest to the inbox, so that the server need not wait.
func TestASlowReaderLeavesABurstToTheInbox(t *testing.T) {
	scene.WithReader(t, nil, func(
		t *testing.T, c *reconnect.Conn, s *scene.WSServer, whole *atomic.Int32, _ func(string),
	) {
		before := whole.Load()
		burst(t, c, s, slowly)
		require.LessOrEqual(t, whole.Load()-before, int32(20), "two leases")
		require.NotZero(t, whole.Load()-before)
	})
}

// slowly is the pause of a reader that is too slow for a burst. No such pause ends when a lease does.
const slowly = 1100 * time.Microsecond

// burst sends 50 messages, and reads them with a pause after each.
func burst(t *testing.T, c *reconnect.Conn, s *scene.WSServer, pause time.Duration) {
	t.Helper()
	for i := range 50 {
		require.NoError(t, s.Conns()[0].Write(t.Context(), websocket.MessageText, fmt.Append(nil, i)))
	}
	for i := range 50 {
		scene.WantMessage(t, c, 1, fmt.Sprint(i))
		time.Sleep(pause)
	}
}

// The reader gives the turn back at a frame that is no message.
func TestAPingIsAnsweredAtOnceWhileTheReaderReads(t *testing.T) {
	scene.WithReader(t, nil, func(t *testing.T, c *reconnect.Conn, s *scene.WSServer, _ *atomic.Int32, _ func(string)) {
		read := make(chan error, 1)
		go func() { _, err := c.Read(t.Context(), nil); read <- err }()
		synctest.Wait()
		start := s.Now()
		require.NoError(t, s.Conns()[0].Ping(t.Context()))
		require.Equal(t, start, s.Now())
		require.NoError(t, c.Write(t.Context(), scene.Text("hello")))
		require.NoError(t, <-read)
	})
}

// observed is a context that counts the functions that wait for its end.
type observed struct {
	context.Context
	waiting *atomic.Int32
}

// Value hides the context below. Otherwise package context would use that one, and AfterFunc would not be called.
func (o observed) Value(any) any { return nil }

func (o observed) AfterFunc(f func()) (stop func() bool) {
	o.waiting.Add(1)
	end := context.AfterFunc(o.Context, f)
	return func() bool { o.waiting.Add(-1); return end() }
}

// A context that ends after its Read disturbs no other Read, and nothing waits for it.
func TestAContextEndsAfterItsRead(t *testing.T) {
	scene.WithReader(t, nil, func(
		t *testing.T, c *reconnect.Conn, _ *scene.WSServer, whole *atomic.Int32, _ func(string),
	) {
		before, waiting := whole.Load(), new(atomic.Int32)
		for range 50 {
			ctx, cancel := context.WithCancel(t.Context())
			send := time.AfterFunc(time.Millisecond, func() { c.Write(context.Background(), scene.Text("hello")) })
			_, err := c.Read(observed{ctx, waiting}, nil)
			require.NoError(t, err)
			send.Stop()
			require.Zero(t, waiting.Load())
			cancel()
		}
		require.EqualValues(t, 50, whole.Load()-before)
	})
}

// A program may read many messages with one context, then some with another, and then no more.
func TestNothingWaitsForTheContextsOfAConnThatHasEnded(t *testing.T) {
	scene.WithReader(t, nil, func(t *testing.T, c *reconnect.Conn, _ *scene.WSServer, _ *atomic.Int32, _ func(string)) {
		waiting := new(atomic.Int32)
		for range 2 {
			ctx, cancel := context.WithCancel(t.Context())
			defer cancel()
			for range 3 {
				send := time.AfterFunc(time.Millisecond, func() { c.Write(context.Background(), scene.Text("hello")) })
				_, err := c.Read(observed{ctx, waiting}, nil)
				require.NoError(t, err)
				send.Stop()
			}
			require.EqualValues(t, 1, waiting.Load(), "the reader keeps the context that it has got again")
		}
		scene.CloseAndWait(c)
		require.Zero(t, waiting.Load())
	})
}

// The end of the context ends the Read, and nothing else.
func TestTheContextOfAReaderThatReadsTheConnection(t *testing.T) {
	scene.WithReader(t, nil, func(
		t *testing.T, c *reconnect.Conn, s *scene.WSServer, _ *atomic.Int32, ask func(string),
	) {
		enough := errors.New("enough")
		for i := range 50 {
			ctx, cancel := context.WithTimeoutCause(t.Context(), time.Duration(i)*time.Millisecond, enough)
			start := s.Now()
			_, err := c.Read(ctx, nil)
			require.Equal(t, enough, err)
			require.Equal(t, time.Duration(i)*time.Millisecond, s.Now()-start)
			cancel()
			start = s.Now()
			ask(fmt.Sprint(i))
			require.Equal(t, start, s.Now(), "the supervisor reads at once")
		}
		require.EqualValues(t, 1, c.Stats().Sessions)
	})
}

// The context ends while only a part of a message has come. The next Read returns the whole message.
func TestTheContextOfAReaderInsideAMessage(t *testing.T) {
	scene.WithReader(t, nil, func(
		t *testing.T, c *reconnect.Conn, s *scene.WSServer, _ *atomic.Int32, ask func(string),
	) {
		ctx, cancel := context.WithCancel(t.Context())
		read := make(chan error, 1)
		go func() { _, err := c.Read(ctx, nil); read <- err }()
		synctest.Wait()
		s.Pipe(t).Trickle(conntest.ToClient, 3, 20*time.Millisecond)
		data := strings.Repeat("x", 50)
		require.NoError(t, c.Write(t.Context(), scene.Text(data)))
		time.Sleep(100 * time.Millisecond)
		cancel()
		require.ErrorIs(t, <-read, context.Canceled)
		wait, end := context.WithTimeout(t.Context(), time.Second)
		defer end()
		m, err := c.Read(wait, nil)
		require.NoError(t, err)
		require.Equal(t, data, string(m.Data))
	})
}

// Whatever ends a session, the reader gets the seam, and then the messages of the next session.
func TestTheEndOfASessionThatTheReaderReads(t *testing.T) {
	for name, end := range map[string]func(c *reconnect.Conn, s *scene.WSServer){
		"the peer closes": func(_ *reconnect.Conn, s *scene.WSServer) {
			s.Conns()[0].Close(websocket.StatusGoingAway, "")
		},
		"the peer is gone": func(_ *reconnect.Conn, s *scene.WSServer) { s.Conns()[0].CloseNow() },
		"Redial":           func(c *reconnect.Conn, _ *scene.WSServer) { c.Redial(1, nil) },
		"Rotate":           func(c *reconnect.Conn, _ *scene.WSServer) { c.Rotate(1, reconnect.Advice{}) },
	} {
		for _, overlap := range []reconnect.Overlap{
			reconnect.OverlapHold, reconnect.OverlapMix, reconnect.OverlapBreakFirst,
		} {
			t.Run(fmt.Sprint(name, overlap), func(t *testing.T) {
				o := &reconnect.Options{Rotate: reconnect.Rotation{Overlap: overlap}}
				scene.WithReader(t, o, func(
					t *testing.T, c *reconnect.Conn, s *scene.WSServer, _ *atomic.Int32, ask func(string),
				) {
					read := make(chan error, 1)
					go func() { _, err := c.Read(t.Context(), nil); read <- err }()
					synctest.Wait()
					end(c, s)
					seam, ok := errors.AsType[*reconnect.Seam](<-read)
					require.True(t, ok)
					require.EqualValues(t, 1, seam.Session)
					require.NoError(t, c.AwaitReady(t.Context()))
					ask("again")
				})
			})
		}
	}
}

// Close and Shutdown end a Read that reads the connection.
func TestTheEndOfAConnWhoseReaderReads(t *testing.T) {
	for name, end := range map[string]func(c *reconnect.Conn){
		"Close":    func(c *reconnect.Conn) { c.Close() },
		"Shutdown": func(c *reconnect.Conn) { c.Shutdown(context.Background()) },
	} {
		t.Run(name, func(t *testing.T) {
			scene.WithReader(t, nil, func(
				t *testing.T, c *reconnect.Conn, _ *scene.WSServer, _ *atomic.Int32, _ func(string),
			) {
				ended := make(chan struct{})
				go func() {
					defer close(ended)
					for range c.Messages(context.Background()) {
					}
				}()
				synctest.Wait()
				end(c)
				<-ended
				<-c.Done()
			})
		})
	}
}

// Goroutines that read at the same time take turns, and get each message once.
func TestSeveralReadersGetEachMessageOnce(t *testing.T) {
	scene.WithReader(t, nil, func(t *testing.T, c *reconnect.Conn, _ *scene.WSServer, _ *atomic.Int32, _ func(string)) {
		got := make(chan string, 1000)
		for range 4 {
			go func() {
				for m, err := range c.Messages(context.Background()) {
					if err == nil {
						got <- string(m.Data)
					}
				}
			}()
		}
		seen := map[string]int{}
		for i := range 200 {
			require.NoError(t, c.Write(t.Context(), scene.Text(fmt.Sprint("m", i))))
			seen[<-got]++
		}
		require.Len(t, seen, 200)
	})
}

// fatal is a context whose method ends the calling goroutine, which has the turn to read.
type fatal struct {
	context.Context
	end func()
}

func (f fatal) Err() error {
	if asks, _, _, _ := runtime.Caller(1); strings.Contains(runtime.FuncForPC(asks).Name(), "internal/lead") {
		f.end()
	}
	return f.Context.Err()
}

// If a goroutine ends or panics while it has the turn to read, the supervisor gets the turn.
func TestTheGoroutineOfAReaderThatReadsTheConnectionEnds(t *testing.T) {
	for name, end := range map[string]func(){"Goexit": runtime.Goexit, "a panic": func() { panic("enough") }} {
		t.Run(name, func(t *testing.T) {
			scene.WithReader(t, nil, func(
				t *testing.T, c *reconnect.Conn, s *scene.WSServer, _ *atomic.Int32, ask func(string),
			) {
				read := make(chan struct{})
				go func() {
					defer close(read)
					defer func() { recover() }()
					c.Read(fatal{t.Context(), end}, nil)
					t.Error("Read has not asked the context")
				}()
				<-read
				start := s.Now()
				require.NoError(t, s.Conns()[0].Ping(t.Context()))
				require.LessOrEqual(t, s.Now()-start, 20*time.Millisecond)
				ask("again")
				require.EqualValues(t, 1, c.Stats().Sessions)
			})
		})
	}
}
