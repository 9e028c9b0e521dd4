package outbox

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// While one session replaces another, what is for any goes by the next one, after what the old one has begun.
func TestTheNextSessionDoesNotOvertakeTheOldOne(t *testing.T) {
	play(t, Options{Down: Keep}, func(t *testing.T, w *world) {
		old := w.stuck()
		w.send(out("b"))
		w.attach()
		w.send(out("c"))
		w.want()
		time.Sleep(time.Second)
		old.Release()
		w.want("2 < b+c @1s", "a: written 1 x1 0s-1s @1s", "b: written 2 x1 1s-1s @1s", "c: written 2 x1 1s-1s @1s")
		w.send(out("d"))
		w.want("2 < d @1s", "d: written 2 x1 1s-1s @1s")
	})
}

// The next session waits only for messages that may go by any session. No other message can be overtaken.
func TestAMessageForTheOldSessionHoldsUpNoOther(t *testing.T) {
	play(t, Options{}, func(t *testing.T, w *world) {
		old := w.attach()
		old.slow = time.Second
		w.send(out("a"))
		w.want("1 < a")
		w.send(pinned(1, "b"), pinned(1, "c"))
		w.attach()
		w.send(out("d"), pinned(2, "e"))
		w.write("f", 1)
		w.want()
		time.Sleep(time.Second)
		w.want("1 < b+c+f @1s", "2 < d+e @1s", "a: written 1 x1 0s-1s @1s", "d: written 2 x1 1s-1s @1s", "e: written 2 x1 1s-1s @1s")
		w.send(out("g"))
		w.want("2 < g @1s", "g: written 2 x1 1s-1s @1s")
		time.Sleep(3 * time.Second)
		w.want("b: written 1 x1 1s-4s @4s", "c: written 1 x1 1s-4s @4s", "f = written 1")
		w.send(pinned(1, "h"))
		w.want("1 < h @4s")
		time.Sleep(time.Second)
		w.want("h: written 1 x1 4s-5s @5s")
	})
}

// The old session goes on with what is for it, also if the next one is lost and another one has come.
func TestTheOldSessionOutlivesTheNextOne(t *testing.T) {
	play(t, Options{Down: Keep}, func(t *testing.T, w *world) {
		old, next := w.attach(), w.attach()
		w.lose(next, nil)
		w.send(pinned(1, "a"), out("b"))
		require.ErrorIs(t, w.Accept(pinned(2, "c")), ErrSessionLost)
		w.want("1 < a", "a: written 1 x1 0s-0s")
		third := w.attach()
		w.want("3 < b", "b: written 3 x1 0s-0s")
		w.send(pinned(1, "d"))
		w.want("1 < d", "d: written 1 x1 0s-0s")
		old.link.Cut(errLost)
		require.EqualError(t, w.Accept(pinned(1, "e")), "session 1: its session was lost", "Detach comes a moment later")
		w.lose(old, nil)
		require.Nil(t, w.old, "its memory is free")
		require.ErrorIs(t, w.Accept(pinned(1, "e")), ErrSessionLost)
		third.link.Cut(errLost)
		require.ErrorIs(t, w.Accept(pinned(3, "f")), ErrSessionLost)
		w.send(out("g"))
		w.lose(third, nil)
		require.ErrorIs(t, w.Accept(pinned(3, "f")), ErrSessionLost)
		w.attach()
		w.want("4 < g", "g: written 4 x1 0s-0s")
		_, _, err := w.Join(out("h").Message, 3, false)
		require.ErrorIs(t, err, ErrSessionLost)
	})
}

// A session has a number before it is ready, and none has one that was not dialed.
func TestAMessageForASessionThatIsNotReadyWaits(t *testing.T) {
	play(t, Options{Down: Keep}, func(t *testing.T, w *world) {
		require.ErrorIs(t, w.Accept(pinned(1, "a")), ErrSessionLost)
		first := w.dial()
		w.send(pinned(1, "b"))
		w.lose(first, nil)
		w.want("b: dropped 0 x0 (its session was lost: lost)")
		next := w.dial()
		w.send(pinned(2, "c"))
		require.ErrorIs(t, w.Accept(pinned(3, "d")), ErrSessionLost)
		w.Attach(next.link, func() {})
		w.want("2 < c", "c: written 2 x1 0s-0s")
	})
}

// Detach returns when the flusher has ended, so that the fate of what it was writing comes first.
func TestDetachWaitsForTheWriteThatIsUnderWay(t *testing.T) {
	play(t, Options{}, func(t *testing.T, w *world) {
		w.plain = true
		p := w.attach()
		p.slow = time.Second
		w.send(out("a"), out("b"), out("c"))
		time.Sleep(3 * time.Second / 2)
		w.want("1 < a", "1 < b @1s", "a: written 1 x1 0s-1s @1s")
		w.lose(p, nil)
		require.Equal(t, 2*time.Second, time.Since(w.start))
		w.want("b: dropped 1 x0 (its session was lost: lost) @2s", "c: dropped 0 x0 (its session was lost: lost) @2s")
	})
}
