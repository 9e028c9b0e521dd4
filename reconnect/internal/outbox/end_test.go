package outbox

import (
	"runtime"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/redial-go/redial/reconnect/internal/link"
	"github.com/redial-go/redial/reconnect/internal/outbox/queue"
)

// Shutdown lets go of the Writes that wait, keeps what Send has queued, and reports what could not be sent from then on.
func TestShutdownReportsWhatCouldNotBeSent(t *testing.T) {
	play(t, Options{Down: Keep}, func(t *testing.T, w *world) {
		w.send(until(time.Second, "early"), until(time.Minute, "late"), out("a"))
		w.write("W", 0)
		time.Sleep(time.Second)
		w.want("early: dropped 0 x0 (too late to be sent) @1s")
		w.life.Leaving.Store(true)
		w.Leave()
		w.want("W = dropped 0 (closed)")
		time.Sleep(time.Minute)
		w.want("late: dropped 0 x0 (too late to be sent) @1m0s")
		w.attach()
		w.want("1 < a @1m1s", "a: written 1 x1 1m1s-1m1s @1m1s")
		unsent, cut := w.Report()
		require.Len(t, unsent, 1)
		require.Equal(t, "late: dropped 0 x0 (too late to be sent)", w.receipt(&unsent[0]))
		require.False(t, cut)
		w.Close()
		_, cut = w.Report()
		require.False(t, cut, "nothing was left")
	})
}

// Close waits for the write that is under way. Its message has its fate first, and is not tried again; the rest is dropped.
func TestCloseDropsWhatWaitsAfterWhatWasBeingWritten(t *testing.T) {
	for name, c := range map[string]struct {
		err  error
		want string
	}{
		"written":   {nil, "a: written 1 x1 0s-1s @1s"},
		"begun":     {errBroken, "a: unknown 1 x1 0s-1s (write: broken) @1s"},
		"not begun": {errNotBegun, "a: dropped 1 x0 (write: not written: broken) @1s"},
	} {
		t.Run(name, func(t *testing.T) {
			play(t, Options{Down: Keep, Refusal: func() error { return Ended(errLost) }}, func(t *testing.T, w *world) {
				p := w.attach()
				p.Hold()
				w.send(repeatable("a"))
				w.want("1 < a")
				w.send(until(time.Hour, "b"))
				w.write("C", 0)
				time.AfterFunc(time.Second, func() {
					if c.err == nil {
						p.Release()
					} else {
						p.FailWrite(c.err)
					}
				})
				w.Close()
				require.Equal(t, time.Second, time.Since(w.start))
				w.want(c.want, "b: dropped 0 x0 (lost) @1s", "C = dropped 0 (lost)")
				_, cut := w.Report()
				require.True(t, cut, "b was dropped")
			})
		})
	}
}

// A session that gets ready while Close waits writes nothing, and Close does not wait for it.
func TestASessionThatGetsReadyDuringCloseWritesNothing(t *testing.T) {
	play(t, Options{Down: Keep}, func(t *testing.T, w *world) {
		old := w.stuck()
		w.send(out("b"))
		shut := make(chan struct{})
		go func() {
			defer close(shut)
			w.Close()
		}()
		require.False(t, closed(shut))
		next := w.dial()
		require.True(t, next.link.TryAcquire(), "a ping is being written")
		w.Attach(next.link, func() {})
		old.FailWrite(errBroken)
		require.True(t, closed(shut))
		next.link.Release()
		w.want("a: unknown 1 x1 0s-0s (write: broken)", "b: dropped 0 x0 (closed)")
	})
}

// Many times, because three goroutines meet here: the one that writes ends, another one would begin, and Close waits.
func TestCloseMeetsTheNextSession(t *testing.T) {
	const times = 5_000
	for n := range times {
		fates, life := make(chan Fate, 2), new(link.Life)
		one, peer := begin(life, 1)
		two, _ := begin(life, 2)
		q := New(Options{
			Limits: queue.Limits{Messages: 10, Bytes: 1000}, Down: Keep,
			Receipt: func(r *Receipt) { fates <- r.Fate },
			Await:   func(done <-chan struct{}, _ string) { <-done },
		}, life, one, nil, 0, false)
		peer.Hold()
		require.NoError(t, q.Accept(out("a")))
		for range 30 {
			runtime.Gosched() // it is being written
		}
		require.NoError(t, q.Accept(out("b")))
		var all sync.WaitGroup
		all.Go(q.Close)
		all.Go(func() { peer.FailWrite(errBroken) })
		all.Go(func() {
			for range n % 50 {
				runtime.Gosched()
			}
			q.Attach(two, func() {})
		})
		all.Wait()
		one.Cut(errLost)
		two.Cut(errLost)
		one.Parted()
		q.End()
		require.Len(t, fates, 2)
	}
}

// A flusher that still waits for its turn writes nothing after the end, the loss or the Close, and takes no turn that is
// another's.
func TestAFlusherEndsBeforeItsTurn(t *testing.T) {
	for name, c := range map[string]struct {
		end  func(w *world, p *peer)
		want []string
	}{
		"the Conn ends":    {func(w *world, p *peer) { w.life.End() }, nil},
		"the link is lost": {func(w *world, p *peer) { p.link.Cut(errLost) }, nil},
		"Close":            {func(w *world, p *peer) { go w.Close() }, []string{"a: dropped 0 x0 (closed)"}},
	} {
		t.Run(name, func(t *testing.T) {
			play(t, Options{Down: Keep}, func(t *testing.T, w *world) {
				p := w.attach()
				require.True(t, p.link.TryAcquire())
				w.send(out("a"))
				synctest.Wait()
				c.end(w, p)
				w.want()
				require.False(t, p.link.TryAcquire(), "another writes")
				p.link.Release()
				w.want(c.want...)
				require.True(t, p.link.TryAcquire())
				p.link.Release()
				require.False(t, w.lane.flushing)
			})
		})
	}
}
