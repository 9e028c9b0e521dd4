package outbox

import (
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/redial-go/redial/conn"
	"github.com/redial-go/redial/reconnect/budget"
)

// A batch has 64 messages, or 32 KiB with 14 bytes for each frame. A larger message goes alone.
func TestWhatWaitsIsHandedOverTogether(t *testing.T) {
	for name, c := range map[string]struct {
		sizes   []int
		o       Options
		batches []int
	}{
		"many":         {slices.Repeat([]int{1}, 130), Options{}, []int{64, 64, 2}},
		"just so many": {slices.Repeat([]int{1}, 64), Options{}, []int{64}},
		"one more":     {slices.Repeat([]int{1}, 65), Options{}, []int{64, 1}},
		"large":        {slices.Repeat([]int{16<<10 - 14}, 4), Options{}, []int{2, 2}},
		"larger":       {slices.Repeat([]int{16<<10 - 13}, 2), Options{}, []int{1, 1}},
		"very large":   {[]int{1, 1, 40 << 10, 1}, Options{}, []int{2, 1, 1}},
	} {
		t.Run(name, func(t *testing.T) {
			c.o.Down, c.o.Messages, c.o.Bytes = Keep, 1000, 1<<20
			play(t, c.o, func(t *testing.T, w *world) {
				for _, size := range c.sizes {
					w.send(out(strings.Repeat("x", size)))
				}
				w.attach()
				synctest.Wait()
				require.Equal(t, c.batches, w.batches)
				require.Len(t, w.fates, len(c.sizes))
				w.given, w.fates = nil, nil
			})
		})
	}
}

// None begins after its deadline: a connection that takes one message at a time has one of them in a turn.
func TestAMessageBehindASlowOneIsNotBegunAfterItsDeadline(t *testing.T) {
	play(t, Options{Down: Keep}, func(t *testing.T, w *world) {
		w.plain = true
		w.send(out("a"), until(time.Second/2, "b"), out("c"))
		p := w.dial()
		p.slow = time.Second
		w.Attach(p.link, func() {})
		time.Sleep(2 * time.Second)
		w.want("1 < a", "1 < c @1s", "b: dropped 0 x0 (too late to be sent) @500ms",
			"a: written 1 x1 0s-1s @1s", "c: written 1 x1 1s-2s @2s")
	})
}

// Each message of a batch that fails has its own fate, and what is left goes by the next session, in its order.
func TestEachMessageOfABatchHasItsOwnFate(t *testing.T) {
	gone := func(w *world) { w.life.Leaving.Store(true) }
	leave := func(w *world) {
		for _, m := range w.writes {
			require.False(w.t, w.Withdraw(m.Waiting, errCanceled))
		}
	}
	for name, c := range map[string]struct {
		down     WhenDown
		batch    string // a small letter is a Send, "+" makes it repeatable, a capital letter is a Write
		after    int    // how many are written
		err      error
		before   func(w *world) // the failure
		messages []string       // the fates before the next session
		next     []string       // those by it
	}{
		"kept": {Keep, "a b c d", 1, errBroken, nil,
			[]string{"a: written 1 x1 0s-1s @1s", "b: unknown 1 x1 0s-1s (write: broken) @1s"},
			[]string{"2 < c+d @1s", "c: written 2 x1 1s-1s @1s", "d: written 2 x1 1s-1s @1s"}},
		"repeatable": {Keep, "a b+ c+", 1, errBroken, nil,
			[]string{"a: written 1 x1 0s-1s @1s"},
			[]string{"2 < b+c @1s", "b: written 2 x2 1s-1s @1s", "c: written 2 x1 1s-1s @1s"}},
		"not begun": {Keep, "a B c", 0, errNotBegun, nil,
			[]string{},
			[]string{"2 < a+B+c @1s", "a: written 2 x1 1s-1s @1s", "c: written 2 x1 1s-1s @1s", "B = written 2"}},
		"not kept": {Fail, "a b+ c D", 1, errBroken, nil,
			[]string{"a: written 1 x1 0s-1s @1s", "b: unknown 1 x1 0s-1s (write: broken) @1s",
				"c: dropped 1 x0 (its session was lost: write: broken) @1s", "D = dropped 1 (write: broken)"}, []string{}},
		"not kept nor begun": {Wait, "a b C", 1, errNotBegun, nil,
			[]string{"a: written 1 x1 0s-1s @1s", "b: dropped 1 x0 (its session was lost: write: not written: broken) @1s"},
			[]string{"2 < C @1s", "C = written 2"}},
		"a Write that was begun": {Keep, "A B", 0, errBroken, nil,
			[]string{"A = unknown 1 (write: broken)"}, []string{"2 < B @1s", "B = written 2"}},
		"a Write before another session": {Fail, "A B", 0, errNotBegun, func(w *world) { w.life.Bridging.Store(true) },
			[]string{}, []string{"2 < A+B @1s", "A = written 2", "B = written 2"}},
		"a Write that has left": {Keep, "A B", 0, errNotBegun, leave,
			[]string{"A = dropped 1 (canceled)", "B = dropped 1 (canceled)"}, []string{}},
		"a Write that has left before another session": {Keep, "A B", 0, errNotBegun,
			func(w *world) { leave(w); w.attach() },
			[]string{"A = dropped 1 (canceled)", "B = dropped 1 (canceled)"}, []string{}},
		"a Write that has left while one session takes the place of another": {Keep, "A B", 0, errNotBegun,
			func(w *world) { leave(w); w.life.Bridging.Store(true) },
			[]string{"A = dropped 1 (canceled)", "B = dropped 1 (canceled)"}, []string{}},
		"a Write that has left when it was begun": {Keep, "A B", 0, errBroken, leave,
			[]string{"A = unknown 1 (write: broken)", "B = dropped 1 (canceled)"}, []string{}},
		"a Write that has left behind a refused message": {Keep, "a bad A B", -1, nil, leave,
			[]string{"a: written 1 x1 0s-1s @1s", "bad: dropped 1 x1 0s-1s (bad message) @1s",
				"A = dropped 1 (canceled)", "B = dropped 1 (canceled)"}, []string{}},
		"Shutdown": {Keep, "A b", 0, errNotBegun, gone,
			[]string{"A = dropped 1 (write: not written: broken)"}, []string{"2 < b @1s", "b: written 2 x1 1s-1s @1s"}},
		"Shutdown, not begun": {Wait, "a B", 1, errNotBegun, gone,
			[]string{"a: written 1 x1 0s-1s @1s", "B = dropped 1 (write: not written: broken)"}, []string{}},
		"refused": {Keep, "a bad b bad C", -1, nil, nil,
			[]string{"1 < b+bad+C @1s", "1 < C @1s", "a: written 1 x1 0s-1s @1s", "bad: dropped 1 x1 0s-1s (bad message) @1s",
				"b: written 1 x1 1s-1s @1s", "bad: dropped 1 x1 1s-1s (bad message) @1s", "C = written 1"},
			[]string{}},
	} {
		t.Run(name, func(t *testing.T) {
			play(t, Options{Down: c.down}, func(t *testing.T, w *world) {
				p := w.attach()
				require.True(t, p.link.TryAcquire())
				for _, data := range strings.Fields(c.batch) {
					data, again := strings.CutSuffix(data, "+")
					switch {
					case again:
						w.send(repeatable(data))
					case data == strings.ToUpper(data):
						w.write(data, 0)
					default:
						w.send(out(data))
					}
				}
				p.Hold()
				p.link.Release()
				w.want("1 < " + strings.NewReplacer("+", "", " ", "+").Replace(c.batch))
				time.Sleep(time.Second)
				if c.before != nil {
					c.before(w)
				}
				if c.err == nil {
					p.Release()
					w.want(c.messages...)
				} else {
					p.FailWriteAfter(c.after, c.err)
					synctest.Wait()
					require.True(t, p.link.Lost())
					w.Detach(p.link, p.link.Cause(nil), nil)
					w.want(c.messages...)
				}
				w.attach()
				w.want(c.next...)
			})
		})
	}
}

// An empty turn is none: what a flusher waited to write has expired meanwhile, and the next message is written.
func TestAFlusherThatComesTooLateWritesNothing(t *testing.T) {
	play(t, Options{}, func(t *testing.T, w *world) {
		p := w.attach()
		require.True(t, p.link.TryAcquire())
		w.send(until(time.Second, "a"))
		time.Sleep(time.Second)
		w.want("a: dropped 0 x0 (too late to be sent) @1s")
		p.link.Release()
		w.want()
		w.send(out("b"))
		w.want("1 < b @1s", "b: written 1 x1 1s-1s @1s")
	})
}

// A paced link takes as many as its window lets through, and the next ones when it lets them. A receipt does not wait for them.
func TestABatchIsNoLargerThanTheWindow(t *testing.T) {
	play(t, Options{Down: Keep}, func(t *testing.T, w *world) {
		w.window = budget.Window{N: 2, Per: time.Minute}
		w.send(out("a"), out("b"), until(time.Second, "c"), out("d"))
		w.attach()
		w.want("1 < a+b", "a: written 1 x1 0s-0s", "b: written 1 x1 0s-0s")
		time.Sleep(time.Minute)
		w.want("1 < d @1m0s", "c: dropped 0 x0 (too late to be sent) @1s", "d: written 1 x1 1m0s-1m0s @1m0s")
		w.send(until(time.Minute, "e"))
		w.want("1 < e @1m0s", "e: written 1 x1 1m0s-1m0s @1m0s")
		w.write("F", 0)
		w.Withdraw(w.writes[0].Waiting, errCanceled)
		time.Sleep(time.Minute)
		w.send(out("g"))
		w.want("1 < g @2m0s", "g: written 1 x1 2m0s-2m0s @2m0s")
	})
}

// The slot of a link is free for a ping while nothing waits that may go by it.
func TestAMessageForAnotherSessionTakesNoTurn(t *testing.T) {
	play(t, Options{Down: Keep}, func(t *testing.T, w *world) {
		w.window = budget.Window{N: 1, Per: time.Minute}
		p := w.attach()
		w.send(out("a"))
		w.want("1 < a", "a: written 1 x1 0s-0s")
		w.dial()
		w.send(pinned(2, "b"))
		synctest.Wait()
		require.True(t, p.link.TryAcquire())
	})
}

// No memory of what was written is kept, and a batch is used again.
func TestABatchThatIsFreeIsEmpty(t *testing.T) {
	for range 1000 { // because a pool may lose what it gets
		b := sendBatches.Get().(*sendBatch)
		b.entries, b.messages = append(b.entries, new(entry)), append(b.messages, conn.TextMessage("a"))
		b.free()
		require.Nil(t, b.entries[:1][0])
		require.Zero(t, b.messages[:1][0])
		if sendBatches.Get() == b {
			return
		}
	}
	t.Error("no batch is used again")
}
