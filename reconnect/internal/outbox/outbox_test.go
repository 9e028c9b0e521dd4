package outbox

import (
	"errors"
	"net"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/redial-go/redial/conn"
	"github.com/redial-go/redial/reconnect/internal/link"
	"github.com/redial-go/redial/reconnect/internal/outbox/queue"
)

// A Conn that sends nothing has no Outbox.
func TestANilOutboxHoldsNothing(t *testing.T) {
	var q *Outbox
	changed := false
	q.Attach(nil, func() { changed = true })
	require.True(t, changed)
	q.Detach(nil, errLost, nil)
	q.Strand(nil, errLost, nil)
	q.Leave()
	q.Close()
	q.End()
	require.False(t, q.Busy())
	require.False(t, q.Draining())
	messages, bytes, age := q.Depth()
	require.Zero(t, messages)
	require.Zero(t, bytes)
	require.Zero(t, age)
	unsent, cut := q.Report()
	require.Empty(t, unsent)
	require.False(t, cut)
	require.NoError(t, q.AwaitReceipts(t.Context()))
}

var errNotReady = errors.New("no session is ready")

// Without a session a Send is refused unless messages are kept, and a Write if it may not wait; but both wait for a session
// that is to take the place of another.
func TestWhenDownSaysWhatIsAcceptedWithoutASession(t *testing.T) {
	for down, want := range map[WhenDown]struct{ send, write error }{
		Fail: {errNotReady, errNotReady}, Wait: {errNotReady, nil}, Keep: {nil, nil},
	} {
		play(t, Options{Down: down, Refusal: func() error { return errNotReady }}, func(t *testing.T, w *world) {
			join := func() (*link.Link, error) {
				m, l, err := w.Join(conn.TextMessage("W"), 0, false)
				if err == nil {
					require.Equal(t, down == Fail, m.FailFast())
					require.Zero(t, m.Session())
					require.True(t, w.Withdraw(m, errCanceled))
				}
				return l, err
			}
			without := func() {
				require.Equal(t, want.send, w.Accept(out("a")))
				l, err := join()
				require.Nil(t, l)
				require.Equal(t, want.write, err)
			}
			without()
			w.life.Bridging.Store(true)
			require.NoError(t, w.Accept(out("b")))
			_, err := join()
			require.NoError(t, err)
			w.life.Bridging.Store(false)
			p := w.attach()
			synctest.Wait()
			require.True(t, p.link.TryAcquire()) // so that the Write is withdrawn before it is begun
			l, err := join()
			require.NoError(t, err)
			require.Same(t, p.link, l)
			p.link.Release()
			synctest.Wait()
			w.given, w.fates = nil, nil
			w.lose(p, nil)
			without()
		})
	}
}

// Whatever ends the Conn, nothing more is accepted. The error says why if the Conn has ended by itself.
func TestNothingIsAcceptedAfterTheEnd(t *testing.T) {
	fatal := Ended(errBroken)
	for name, end := range map[string]func(w *world){
		"Close":    func(w *world) { w.life.Closed.Store(true) },
		"Shutdown": func(w *world) { w.life.Leaving.Store(true) },
		"closed":   func(w *world) { w.Close() },
		"born so":  func(w *world) { w.End(); w.Outbox = New(w.o, &w.life, nil, nil, 0, true) },
	} {
		for _, c := range []struct {
			refusal func() error
			want    error
		}{{nil, net.ErrClosed}, {func() error { return errNotReady }, net.ErrClosed}, {func() error { return fatal }, fatal}} {
			t.Run(name, func(t *testing.T) {
				play(t, Options{Down: Keep, Refusal: c.refusal}, func(t *testing.T, w *world) {
					w.attach()
					end(w)
					require.Equal(t, c.want, w.Accept(out("a")))
					_, _, err := w.Join(conn.TextMessage("W"), 0, false)
					require.Equal(t, c.want, err)
				})
			})
		}
	}
}

// What is being written takes no room, so that a wait for room ends when a write begins; it ends, too, when a message expires.
func TestThereIsRoomWhenAWriteBegins(t *testing.T) {
	play(t, Options{Down: Keep, Limits: queue.Limits{Messages: 1, Bytes: 4}}, func(t *testing.T, w *world) {
		full := func() <-chan struct{} {
			room, _ := w.Progress()
			err := w.Accept(out("x"))
			require.ErrorIs(t, err, ErrFull)
			require.EqualError(t, err, "outbox is full: 1 messages of 1 bytes wait")
			require.False(t, closed(room), "a refusal makes no room")
			return room
		}
		require.EqualError(t, w.Accept(out("12345")), "outbox is full: a message of 5 bytes is larger than the limit of 4")
		require.Nil(t, w.spare.first, "it is given back, because nothing is pending")
		w.send(out("a"))
		room := full()
		p := w.dial()
		p.Hold()
		w.Attach(p.link, func() {})
		require.True(t, closed(room))
		w.send(until(time.Second, "b"))
		room = full()
		time.Sleep(time.Second)
		require.True(t, closed(room))
		w.send(out("c"))
		room = full()
		w.Leave()
		require.True(t, closed(room), "and then it is refused otherwise")
		p.Release()
		w.want("1 < a", "1 < c @1s", "b: dropped 0 x0 (too late to be sent) @1s", "a: written 1 x1 0s-1s @1s", "c: written 1 x1 1s-1s @1s")
		require.Nil(t, w.spare.first)
	})
}

// A Write that waits takes no room, and gives way to nothing.
func TestAWriteThatWaitsTakesNoRoom(t *testing.T) {
	play(t, Options{Down: Keep, Limits: queue.Limits{Messages: 1, Bytes: 1, Full: queue.DropOldest}}, func(t *testing.T, w *world) {
		w.write("WWW", 0)
		w.send(out("a"), out("b"))
		w.want("a: dropped 0 x0 (outbox is full)")
		w.attach()
		w.want("1 < WWW+b", "b: written 1 x1 0s-0s", "WWW = written 1")
	})
}

// The age of a message counts from its own Send, and its deadline if that is sooner, whatever waits or is being written.
func TestAMessageExpiresAtItsAgeOrDeadline(t *testing.T) {
	for _, attached := range []bool{false, true} {
		play(t, Options{Down: Keep, Age: 2 * time.Minute}, func(t *testing.T, w *world) {
			if attached {
				w.attach().Hold()
			}
			w.send(out("a"))
			if attached {
				w.want("1 < a")
				w.send(out("a"))
			}
			time.Sleep(2 * time.Second)
			w.send(out("b"), until(time.Hour, "c"), until(time.Minute, "d"))
			require.Equal(t, ErrExpired, w.Accept(until(0, "e")))
			time.Sleep(2 * time.Minute)
			const late = ": dropped 0 x0 (too late to be sent) @"
			w.want("d"+late+"1m2s", "a"+late+"2m0s", "b"+late+"2m2s", "c"+late+"2m2s")
			if attached {
				w.peers[0].Release()
				w.want("a: written 1 x1 0s-2m2s @2m2s")
			}
		})
	}
}

// A burst shares one reading of the clock, unless a message may expire soon.
func TestABurstReadsTheClockOnce(t *testing.T) {
	for age, shared := range map[time.Duration]bool{-1: true, 0: true, 1: false, time.Minute - 1: false, time.Minute: true} {
		withLateFlusher(t, -1, func(t *testing.T, q *Outbox) {
			q.o.Age = age
			require.NoError(t, q.Accept(&Outgoing{Key: "key"}))
			_, _, since := q.Depth()
			require.Equal(t, shared, since == time.Second)
		})
	}
}

// The depth counts what is being written, too. Its bytes are those that take room, and its age that of what waits longest.
func TestTheDepthIsWhatHasNoFate(t *testing.T) {
	play(t, Options{Down: Keep}, func(t *testing.T, w *world) {
		depth := func(messages, bytes uint64, age time.Duration) {
			t.Helper()
			n, b, a := w.Depth()
			require.Equal(t, []any{messages, bytes, age}, []any{n, b, a})
			require.Equal(t, messages > 0, w.Busy())
			require.Equal(t, messages > 0, w.Draining())
		}
		depth(0, 0, 0)
		w.send(out("aa"))
		time.Sleep(time.Second)
		w.send(out("bbb"))
		m := w.write("W", 0)
		depth(3, 5, time.Second)
		drained := w.Drained()
		p := w.dial()
		p.Hold()
		w.Attach(p.link, func() {})
		w.want("1 < aa+bbb+W @1s")
		depth(3, 0, 0)
		w.send(out("c"))
		depth(4, 1, 0)
		require.False(t, w.Withdraw(m, errCanceled))
		p.FailWriteAfter(2, errNotBegun)
		w.want("aa: written 1 x1 1s-1s @1s", "bbb: written 1 x1 1s-1s @1s", "W = dropped 1 (canceled)")
		depth(1, 1, 0)
		require.Equal(t, []uint64{2, 5}, []uint64{w.life.Counts.Written.Load(), w.life.Counts.WrittenBytes.Load()})
		require.False(t, closed(drained))
		w.lose(p, nil)
		w.write("X", 0)
		w.spare.add(new(entry)) // as from the pool, of a chain that was longer
		w.attach()
		w.want("2 < c+X @1s", "c: written 2 x1 1s-1s @1s", "X = written 2")
		depth(0, 0, 0)
		require.True(t, closed(drained))
		require.Nil(t, w.spare.first, "it holds no memory")
	})
	play(t, Options{Down: Wait}, func(t *testing.T, w *world) {
		m := w.write("W", 0)
		require.True(t, w.Busy())
		require.False(t, w.Draining(), "a Write ends with Shutdown")
		drained := w.Drained()
		require.True(t, w.Withdraw(m, errCanceled))
		require.True(t, closed(drained))
		require.False(t, w.Busy())
		require.False(t, closed(m.Done()))
		w.attach()
		w.want() // what was withdrawn is not written
	})
}
