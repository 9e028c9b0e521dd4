package reconnect_test

import (
	"context"
	"fmt"
	"runtime"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/redial-go/redial/conn"
	"github.com/redial-go/redial/dialer"
	"github.com/redial-go/redial/reconnect"
	"github.com/redial-go/redial/reconnect/internal/conntests/scene"
)

// The tests of receiver.go, sender.go and send.go that are about what a message and a connection
// cost. They share a peer in a process of its own.

// allocations counts the allocations of the whole process. The test calls message once for each
// message: the first ones warm up, and the ones after them are measured.
type allocations struct {
	messages   int
	start, end runtime.MemStats
	done       chan struct{} // closed when all are measured
}

func (a *allocations) message() {
	switch a.messages++; a.messages {
	case warmUp:
		runtime.ReadMemStats(&a.start)
	case warmUp + measured:
		runtime.ReadMemStats(&a.end)
		close(a.done)
	}
}

// wantAtMost asserts how many allocations there were for each message. A fraction is what many
// messages share, such as a queue that grows or a goroutine that waits.
func (a *allocations) wantAtMost(t *testing.T, most float64) {
	t.Helper()
	<-a.done
	require.Less(t, float64(a.end.Mallocs-a.start.Mallocs)/measured, most)
}

// wantBytesAtMost asserts how much was allocated for each message.
func (a *allocations) wantBytesAtMost(t *testing.T, most float64) {
	t.Helper()
	<-a.done
	require.Less(t, float64(a.end.TotalAlloc-a.start.TotalAlloc)/measured, most)
}

const warmUp, measured = 2000, 10_000

func newAllocations() *allocations { return &allocations{done: make(chan struct{})} }

// measure runs a test for messages of two sizes over real sockets. The peer is another process.
func measure(t *testing.T, f func(t *testing.T, url string, size int)) {
	if scene.RaceEnabled() {
		t.Skip("with the race detector a sync.Pool forgets a part of what it is given")
	}
	for _, size := range []int{128, 4096} {
		t.Run(fmt.Sprint(size), func(t *testing.T) {
			defer runtime.GOMAXPROCS(runtime.GOMAXPROCS(1)) // so that goroutines alternate in the same way each time
			f(t, startPeer(t), size)
		})
	}
}

// feeding returns url with a query that asks for as many messages as are counted.
func feeding(url string, size int) string {
	return fmt.Sprintf("%s?size=%d&count=%d", url, size, warmUp+measured)
}

// dialReady returns a Conn to url that is ready. The end of the test closes it.
func dialReady(t *testing.T, url string, o *reconnect.Options) *reconnect.Conn {
	t.Helper()
	c, err := reconnect.New(&dialer.WebSocket{URL: url}, o)
	require.NoError(t, err)
	t.Cleanup(func() { scene.CloseAndWait(c) })
	require.NoError(t, c.Await(t.Context(), reconnect.StateReady))
	return c
}

func TestAMessageForOnMessageAllocatesNothing(t *testing.T) {
	measure(t, func(t *testing.T, url string, size int) {
		a := newAllocations()
		dialReady(t, feeding(url, size), &reconnect.Options{OnMessage: func(context.Context, reconnect.Message) { a.message() }})
		a.wantAtMost(t, 0.05)
	})
}

// The reader is slower than the peer here, so that the inbox is full and empty by turns.
func TestReadIntoABufferAllocatesNothing(t *testing.T) {
	measure(t, func(t *testing.T, url string, size int) {
		a, c, buf := newAllocations(), dialReady(t, feeding(url, size), nil), make([]byte, size)
		for range warmUp + measured {
			_, err := c.Read(t.Context(), buf)
			require.NoError(t, err)
			a.message()
		}
		a.wantAtMost(t, 0.05)
	})
}

// A layer costs no allocation, whether it takes a message or not, in push and in pull.
func TestAMessageForALayerAllocatesNothing(t *testing.T) {
	for name, push := range map[string]bool{"push": true, "pull": false} {
		t.Run(name, func(t *testing.T) {
			measure(t, func(t *testing.T, url string, size int) {
				a, o := newAllocations(), new(reconnect.Options)
				if push {
					o.OnMessage = func(context.Context, reconnect.Message) {}
				}
				o.Layers = []*reconnect.Layer{
					{Receive: func(reconnect.Message) bool { return false }},
					{Receive: func(reconnect.Message) bool { a.message(); return true }},
				}
				dialReady(t, feeding(url, size), o)
				a.wantAtMost(t, 0.05)
			})
		})
	}
}

func TestMessagesAllocatesTheDataOfAMessageOnly(t *testing.T) {
	measure(t, func(t *testing.T, url string, size int) {
		a, c := newAllocations(), dialReady(t, feeding(url, size), nil)
		for _, err := range c.Messages(t.Context()) {
			require.NoError(t, err)
			if a.message(); a.messages == warmUp+measured {
				break
			}
		}
		a.wantAtMost(t, 1.1)
		a.wantBytesAtMost(t, 1.1*float64(size))
	})
}

func TestAWriteWithoutAnOutboxAllocatesNothing(t *testing.T) {
	measure(t, func(t *testing.T, url string, size int) {
		a, c, m := newAllocations(), dialReady(t, url, nil), conn.BinaryMessage(make([]byte, size))
		for range warmUp + measured {
			require.NoError(t, c.Write(t.Context(), m))
			a.message()
		}
		a.wantAtMost(t, 0.05)
	})
}

// The test waits for the answer to each message before it writes the next.
func TestAQuestionAndItsAnswerAllocateNothing(t *testing.T) {
	measure(t, func(t *testing.T, url string, size int) {
		a, m, answered := newAllocations(), conn.BinaryMessage(make([]byte, size)), make(chan struct{}, 1)
		c := dialReady(t, url+"?echo", &reconnect.Options{OnMessage: func(context.Context, reconnect.Message) { answered <- struct{}{} }})
		for range warmUp + measured {
			require.NoError(t, c.Write(t.Context(), m))
			<-answered
			a.message()
		}
		a.wantAtMost(t, 0.05)
	})
}

// A Send that finds nothing under way starts the goroutine that writes and the one that calls
// OnReceipt.
func TestASendAllocatesNothingAndTwiceAlone(t *testing.T) {
	for most, want := range map[int]float64{512: 0.2, 1: 2.05} {
		measure(t, func(t *testing.T, url string, size int) {
			a, m, room := newAllocations(), conn.BinaryMessage(make([]byte, size)), make(chan struct{}, most) // one for each message on its way
			c := dialReady(t, url, &reconnect.Options{Outbox: reconnect.Outbox{OnReceipt: func(context.Context, reconnect.Receipt) {
				<-room
				a.message()
			}}})
			for range warmUp + measured {
				room <- struct{}{}
				require.NoError(t, c.SendWait(t.Context(), reconnect.Outgoing{Message: m, Deadline: time.Now().Add(time.Minute)}))
			}
			a.wantAtMost(t, want)
		})
	}
}

// The memory of a message is used again, but the message itself is forgotten.
func TestAMessageIsForgottenWhenItsReceiptWasGiven(t *testing.T) {
	written := make(chan struct{}, 1)
	c := dialReady(t, startPeer(t), &reconnect.Options{Outbox: reconnect.Outbox{
		OnReceipt: func(context.Context, reconnect.Receipt) { written <- struct{}{} },
	}})
	freed := make(chan string, 2)
	func() {
		data, tag := make([]byte, 1<<10), &reconnect.Stats{}
		runtime.AddCleanup(&data[0], func(what string) { freed <- what }, "data")
		runtime.AddCleanup(tag, func(what string) { freed <- what }, "tag")
		require.NoError(t, c.Send(reconnect.Outgoing{Message: conn.BinaryMessage(data), Tag: tag}))
		<-written
	}()
	scene.CloseAndWait(c) // so that no goroutine has it in hand
	runtime.GC()          // once, because the second one frees what is kept to be used again
	for range 2 {
		<-freed
	}
}

// Section Goroutines of doc.go, and promise 11: none is left.
func TestAReadyConnectionOwnsOneGoroutine(t *testing.T) {
	const conns = 50
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	for name, o := range map[string]*reconnect.Options{"push": {OnMessage: func(context.Context, reconnect.Message) {}}, "pull": {}} {
		o.OnSession = func(context.Context, *reconnect.Opening) error { return nil }
		d := &dialer.WebSocket{URL: startPeer(t)}
		before := runtime.NumGoroutine()
		var open []*reconnect.Conn
		for range conns {
			c, err := reconnect.New(d, o)
			require.NoError(t, err)
			defer scene.CloseAndWait(c)
			open = append(open, c)
			require.NoError(t, c.Await(ctx, reconnect.StateReady))
		}
		wantGoroutines(ctx, t, before+conns, name)
		for _, c := range open {
			scene.CloseAndWait(c)
		}
		wantGoroutines(ctx, t, before, name)
	}
}

// wantGoroutines waits until there are exactly so many, because those of a handshake may take a
// moment to end.
func wantGoroutines(ctx context.Context, t *testing.T, want int, name string) {
	t.Helper()
	for runtime.NumGoroutine() != want {
		if ctx.Err() != nil {
			require.Equal(t, want, runtime.NumGoroutine(), name)
			return
		}
		time.Sleep(time.Millisecond)
	}
}
