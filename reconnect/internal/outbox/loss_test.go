package outbox

import (
	"context"
	"errors"
	"io"
	"net"
	"os"
	"runtime"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/redial-go/redial/conn"
	"github.com/redial-go/redial/reconnect/internal/outbox/queue"
)

// What a session leaves behind waits for another one, or not, as WhenDown says; what is for it alone never does.
func TestALostSessionLeavesBehindWhatMayWait(t *testing.T) {
	const own = "own: dropped 0 x0 (its session was lost: lost)"
	const ownWrite, write = "OWN = dropped 0 (its session was lost: lost)", "W = dropped 0 (lost)"
	const any, next = "any: dropped 0 x0 (its session was lost: lost)", "next: dropped 0 x0 (its session was lost: lost)"
	const anySent, nextSent = "any: written 2 x1 0s-0s", "next: written 2 x1 0s-0s"
	for name, c := range map[string]struct {
		down   WhenDown
		bridge bool // another session is to take its place
		asks   bool // keeps is asked, and keeps nothing but "next"
		lost   []string
		gone   []string // when no other session has taken its place
		sent   []string
	}{
		"fail": {Fail, false, false, []string{any, own, next, write, ownWrite}, nil, nil},
		"wait": {Wait, false, false, []string{any, own, next, ownWrite}, nil, []string{"2 < W", "W = written 2"}},
		"keep": {Keep, false, false, []string{own, ownWrite}, nil, []string{"2 < any+next+W", anySent, nextSent, "W = written 2"}},
		"ask":  {Keep, false, true, []string{own, any, ownWrite}, nil, []string{"2 < next+W", nextSent, "W = written 2"}},

		"fail, bridged": {Fail, true, false, []string{own, ownWrite}, []string{any, next, write}, nil},
		"ask, bridged":  {Keep, true, true, []string{own, ownWrite}, []string{any}, []string{"2 < next+W", nextSent, "W = written 2"}},
	} {
		t.Run(name, func(t *testing.T) {
			play(t, Options{Down: c.down}, func(t *testing.T, w *world) {
				p, after := w.attach(), w.dial()
				require.True(t, p.link.TryAcquire())
				w.send(out("any"), pinned(1, "own"), pinned(2, "next"))
				w.write("W", 0)
				w.write("OWN", 1)
				w.want()
				w.life.Bridging.Store(c.bridge)
				p.link.Cut(errLost)
				p.link.Release()
				var keeps Keeps
				asked := ""
				if c.asks {
					keeps = func(o Outgoing) bool { asked += string(o.Data); return string(o.Data) == "next" }
				}
				w.Detach(p.link, errLost, keeps)
				w.want(c.lost...)
				require.Zero(t, c.bridge && asked != "")
				w.life.Bridging.Store(false)
				if c.bridge {
					w.Strand(p.link, errLost, keeps)
				}
				w.want(c.gone...)
				require.Equal(t, c.asks, asked == "anynext", "of each that could wait, once")
				w.Attach(after.link, func() {})
				w.want(c.sent...)
			})
		})
	}
}

// Nothing is stranded while another session is ready, or comes in the place of the old one.
func TestTheLossOfTheOldSessionConcernsItsOwnMessagesOnly(t *testing.T) {
	asked := func(Outgoing) bool { t.Error("asked"); return false }
	play(t, Options{Down: Keep}, func(t *testing.T, w *world) {
		old, next := w.attach(), w.attach()
		require.True(t, old.link.TryAcquire())
		next.Hold()
		w.send(out("a"))
		w.want("2 < a")
		w.send(out("b"), pinned(1, "c"))
		w.write("D", 0)
		old.link.Cut(errLost)
		old.link.Release()
		w.Detach(old.link, errLost, asked)
		w.want("c: dropped 0 x0 (its session was lost: lost)")
		next.Release()
		w.want("2 < b+D", "a: written 2 x1 0s-0s", "b: written 2 x1 0s-0s", "D = written 2")
	})
	play(t, Options{Down: Keep}, func(t *testing.T, w *world) {
		old, next := w.attach(), w.attach()
		next.link.Cut(errLost) // its Detach comes later
		w.send(out("a"))
		w.lose(old, asked)
		w.want()
		w.lose(next, func(Outgoing) bool { return false })
		w.want("a: dropped 0 x0 (its session was lost: lost)")
	})
	play(t, Options{Down: Fail}, func(t *testing.T, w *world) {
		old, next := w.attach(), w.attach()
		require.True(t, next.link.TryAcquire())
		w.write("ANY", 0)
		w.write("OWN", 2)
		next.link.Cut(errLost) // its Detach comes later
		next.link.Release()
		old.link.Cut(errBroken)
		w.Detach(old.link, errBroken, nil)
		w.want()
		w.lose(next, nil)
		w.want("ANY = dropped 0 (lost)", "OWN = dropped 0 (its session was lost: lost)")
	})
}

// Keep takes its time. What has expired meanwhile has its fate, and Keep is not asked about it; after Close
// it is asked no more.
func TestKeepsIsAskedAboutWhatStillWaits(t *testing.T) {
	play(t, Options{Down: Keep}, func(t *testing.T, w *world) {
		p := w.attach()
		require.True(t, p.link.TryAcquire())
		w.send(until(time.Second/2, "a"), out("b"), until(3*time.Second/2, "c"), out("d"), out("e"))
		p.link.Cut(errLost)
		p.link.Release()
		asked := ""
		w.Detach(p.link, errLost, func(o Outgoing) bool {
			asked += string(o.Data)
			time.Sleep(time.Second)
			w.life.Closed.Store(string(o.Data) == "d")
			return string(o.Data) == "d"
		})
		require.Equal(t, "abd", asked)
		w.want("a: dropped 0 x0 (too late to be sent) @1s", "c: dropped 0 x0 (too late to be sent) @1.5s",
			"b: dropped 0 x0 (its session was lost: lost) @2s")
		n, _, _ := w.Depth()
		require.EqualValues(t, 2, n)
	})
}

// The receipt of a message gives its data back, so it follows when keeps has returned, or has ended the goroutine. The
// fate itself is known at once.
func TestTheDataIsNotTheCallersWhileKeepsLooksAtIt(t *testing.T) {
	for _, exits := range []bool{false, true} {
		one := queue.Limits{Messages: 1, Bytes: 100, Full: queue.DropOldest}
		play(t, Options{Down: Keep, Limits: one}, func(t *testing.T, w *world) {
			p := w.attach()
			require.True(t, p.link.TryAcquire())
			w.send(out("a"))
			p.link.Cut(errLost)
			p.link.Release()
			awaited := make(chan struct{})
			var detached sync.WaitGroup
			detached.Go(func() {
				w.Detach(p.link, errLost, func(Outgoing) bool {
					w.send(out("b"))
					w.want()
					go func() {
						_ = w.AwaitReceipts(t.Context())
						close(awaited)
					}()
					w.want() // it waits
					w.Close()
					w.want("b: dropped 0 x0 (closed)")
					require.False(t, closed(awaited))
					if exits {
						runtime.Goexit()
					}
					return false
				})
			})
			detached.Wait()
			w.want("a: dropped 0 x0 (outbox is full)")
			require.True(t, closed(awaited))
		})
	}
}

// The next session of a rotation may get ready while keeps is asked. What keeps drops is not written, and
// what is behind it keeps its place.
func TestTheNextSessionWaitsForKeeps(t *testing.T) {
	for _, kept := range []bool{false, true} {
		play(t, Options{Down: Keep}, func(t *testing.T, w *world) {
			p := w.attach()
			require.True(t, p.link.TryAcquire())
			w.write("W", 0)
			w.send(out("a"))
			p.link.Cut(errLost)
			p.link.Release()
			w.Detach(p.link, errLost, func(Outgoing) bool {
				w.send(out("b"))
				w.attach()
				w.want("2 < W", "W = written 2")
				time.Sleep(time.Second)
				w.want()
				return kept
			})
			if kept {
				w.want("2 < a+b @1s", "a: written 2 x1 1s-1s @1s", "b: written 2 x1 1s-1s @1s")
			} else {
				w.want("2 < b @1s", "a: dropped 0 x0 (its session was lost: lost) @1s", "b: written 2 x1 1s-1s @1s")
			}
		})
	}
}

// Its memory is not used again for another message while Keep may still be asked about it.
func TestKeepsIsNotAskedAboutAMessageThatCameLater(t *testing.T) {
	play(t, Options{Down: Keep}, func(t *testing.T, w *world) {
		p := w.attach()
		require.True(t, p.link.TryAcquire())
		w.send(out("a"), until(time.Second, "b"))
		p.link.Cut(errLost)
		p.link.Release()
		asked := ""
		w.Detach(p.link, errLost, func(o Outgoing) bool {
			asked += string(o.Data)
			time.Sleep(2 * time.Second)
			w.send(out("c"), out("d"))
			return true
		})
		require.Equal(t, "a", asked)
		w.want("b: dropped 0 x0 (too late to be sent) @1s")
	})
}

// A repeatable message is tried again, but never reported as dropped if it may have been sent; and it still expires.
func TestADoubtAboutAMessageOutlivesALaterTry(t *testing.T) {
	play(t, Options{Down: Keep}, func(t *testing.T, w *world) {
		p := w.attach()
		p.Hold()
		a := until(10*time.Second, "a")
		a.Repeatable = true
		w.send(a)
		w.want("1 < a")
		w.send(until(time.Second, "b")) // its alarm rings while a is not in the queue
		time.Sleep(2 * time.Second)
		w.want("b: dropped 0 x0 (too late to be sent) @1s")
		w.lose(p, nil)
		next := w.dial()
		next.FailWrite(errNotBegun)
		w.Attach(next.link, func() {})
		w.want("2 < a @2s")
		w.lose(next, nil)
		time.Sleep(8*time.Second - 1)
		w.want()
		time.Sleep(time.Nanosecond)
		w.want("a: unknown 2 x1 0s-2s (too late to be sent) @10s")
		require.EqualValues(t, 1, w.life.Counts.Unknown.Load())
		require.EqualValues(t, 1, w.life.Counts.Dropped.Load())
	})
}

// The cause is why the link was cut, and not that its connection was closed then.
func TestAReceiptNamesTheCauseOfTheLoss(t *testing.T) {
	play(t, Options{}, func(t *testing.T, w *world) {
		p := w.stuck()
		w.write("B", 0)
		w.lose(p, nil)
		w.want("a: unknown 1 x1 0s-0s (lost)", "B = dropped 0 (lost)")
	})
}

// The error of a message is that of its session's end, unless that would look like the end of something else.
func TestTheErrorOfALossHidesOnlyEnds(t *testing.T) {
	closing := &conn.CloseError{Code: 1013}
	require.Equal(t, error(closing), AsLoss(0, closing))
	for _, c := range []struct {
		session uint64
		cause   error
	}{{1, closing}, {0, context.DeadlineExceeded}, {0, context.Canceled}, {1, net.ErrClosed}, {1, os.ErrDeadlineExceeded}, {1, io.EOF}} {
		err := AsLoss(c.session, c.cause)
		require.ErrorIs(t, err, ErrSessionLost)
		require.EqualError(t, err, "its session was lost: "+c.cause.Error())
		require.Equal(t, c.cause == io.EOF || c.cause == error(closing), errors.Is(err, c.cause), "%v", c.cause)
		_, found := errors.AsType[*conn.CloseError](err)
		require.Equal(t, c.cause == error(closing), found)
	}
	ended := Ended(closing)
	require.ErrorIs(t, ended, net.ErrClosed)
	require.ErrorIs(t, ended, closing)
	require.EqualError(t, ended, closing.Error())
}
