package link

import (
	"context"
	"fmt"
	"net"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/redial-go/redial/conn"
	"github.com/redial-go/redial/reconnect/budget"
)

// onePerSecond lets one message through in a second.
var onePerSecond = budget.Window{N: 1, Per: time.Second}

// write writes a message when it is its turn.
func (w *world) write(ctx context.Context, text string) error {
	if err := w.Acquire(ctx); err != nil {
		return err
	}
	defer w.Release()
	if err := w.AwaitWrite(ctx); err != nil {
		return err
	}
	_, err := w.Write(messages(text))
	return err
}

// begin calls f in a goroutine, and returns when that waits. Then result waits for what f has returned, and says when.
func (w *world) begin(f func() error) (result func() string) {
	done := make(chan string, 1)
	go func() { done <- fmt.Sprint(f(), " after ", w.now()) }()
	synctest.Wait()
	return func() string { return <-done }
}

// free returns how many messages may be written now.
func (w *world) free() int {
	n, _ := w.MayWrite(context.Background(), 99, func() bool { return true })
	return n
}

// WriteFirst and a ping come before all who have waited longer, and each counts in the window.
func TestEachWriteOfALinkWaitsForTheWindow(t *testing.T) {
	inBubble(t, onePerSecond, func(t *testing.T, w *world) {
		w.Observe(new(watched)) // which does not end the limit
		ctx := t.Context()
		require.NoError(t, w.write(ctx, "a"))
		b := w.begin(func() error { return w.write(ctx, "b") })
		c := w.begin(func() error { return w.write(ctx, "c") })
		ping := w.begin(func() error { return w.AwaitPing(ctx) })
		time.Sleep(3 * time.Second / 2)
		first := w.begin(func() error { return w.WriteFirst(ctx, conn.TextMessage("!")) })
		require.Equal(t, "<nil> after 1s, <nil> after 2s, <nil> after 3s, <nil> after 4s", b()+", "+ping()+", "+first()+", "+c())
		require.Equal(t, "ab!c", w.written())
		require.True(t, w.TryAcquire(), "each has given the slot back")
		require.False(t, w.HeldByWindow())
	})
}

func TestAPingCountsOnceInTheWindow(t *testing.T) {
	w := newWorld(nil, budget.Window{N: 3, Per: never})
	require.NoError(t, w.AwaitPing(t.Context()))
	require.Equal(t, 2, w.free())
}

// A ping is written beside the messages if there is no limit to keep.
func TestWithoutALimitNothingWaitsForIt(t *testing.T) {
	w := newWorld(nil, noLimit)
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	require.True(t, w.TryAcquire())
	require.NoError(t, w.AwaitPing(ctx))
	require.Equal(t, 99, w.free())
	w.Wake()
	require.ErrorIs(t, w.WriteFirst(ctx, conn.TextMessage("a")), context.Canceled)
	require.False(t, w.HeldByWindow())
}

// The waiter is woken after 0.25 s and after 0.75 s.
func TestTheWaitForTheWindowEndsWhenThereIsNothingToWrite(t *testing.T) {
	type row struct {
		wrote, most int
		nothing     time.Duration // since when there is nothing to write; negative: it is not asked
		want        string
	}
	each(t, budget.Window{N: 2, Per: time.Second}, map[string]row{
		"room":                  {0, 9, 0, "2 <nil> after 0s"},
		"room for more":         {0, 1, never, "1 <nil> after 0s"},
		"room for one":          {1, 9, never, "1 <nil> after 0s"},
		"no room":               {2, 9, never, "2 <nil> after 1s"},
		"no room, nobody asked": {2, 9, -1, "2 <nil> after 1s"},
		"nothing at first":      {2, 9, 0, "0 <nil> after 0s"},
		"nothing later":         {2, 9, time.Second / 2, "0 <nil> after 750ms"},
	}, func(t *testing.T, w *world, row row) {
		(*Link)(nil).Wake()
		time.AfterFunc(time.Second/4, w.Wake)
		time.AfterFunc(3*time.Second/4, w.Wake)
		w.Wrote(row.wrote)
		nothing := func() bool { return w.now() >= row.nothing }
		if row.nothing < 0 {
			nothing = nil
		}
		n, err := w.MayWrite(t.Context(), row.most, nothing)
		require.Equal(t, row.want, fmt.Sprint(n, err, " after ", w.now()))
	})
}

func TestTheWaitForTheWindowEndsWithTheContextTheLinkAndTheLife(t *testing.T) {
	type row struct {
		end  func(w *world, cancel context.CancelCauseFunc)
		want error
	}
	each(t, onePerSecond, map[string]row{
		"context": {func(_ *world, cancel context.CancelCauseFunc) { cancel(errSecond) }, errSecond},
		"link":    {func(w *world, _ context.CancelCauseFunc) { w.Cut(errFirst) }, errFirst},
		"closed":  {func(w *world, _ context.CancelCauseFunc) { w.Close() }, net.ErrClosed},
		"life":    {func(w *world, _ context.CancelCauseFunc) { w.Life().End() }, net.ErrClosed},
	}, func(t *testing.T, w *world, row row) {
		ctx, cancel := context.WithCancelCause(t.Context())
		w.Wrote(1)
		write := w.begin(func() error { return w.write(ctx, "a") })
		time.Sleep(time.Second / 2)
		row.end(w, cancel)
		require.Equal(t, fmt.Sprint(row.want, " after 500ms"), write())
		require.Empty(t, w.written())
	})
}

// A probe that the window has held back was not written, and so it was no probe. The window is full.
func TestAProbeThatIsTooLateKnowsWhetherTheWindowHeldIt(t *testing.T) {
	wait := func(w *world, d time.Duration, times int) {
		for range times {
			ctx, cancel := context.WithTimeout(context.Background(), d)
			defer cancel()
			w.AwaitWrite(ctx)
		}
	}
	type row struct {
		free   bool         // the slot; else another write has it
		before func(*world) // what the other write does
		held   bool
	}
	each(t, budget.Window{N: 1, Per: never}, map[string]row{
		"no other write":                       {true, func(*world) {}, true},
		"a stuck write":                        {false, func(*world) {}, false},
		"a stuck write that has waited before": {false, func(w *world) { wait(w, 1, 5) }, false},
		"a write that waits":                   {false, func(w *world) { go wait(w, time.Minute, 1) }, true},
		"a write that waits meanwhile":         {false, func(w *world) { time.AfterFunc(time.Second, func() { wait(w, time.Second, 1) }) }, true},
	}, func(t *testing.T, w *world, row row) {
		w.Wrote(1)
		require.True(t, row.free || w.TryAcquire())
		row.before(w)
		synctest.Wait()
		ctx, cancel := context.WithTimeout(t.Context(), 5*time.Second)
		defer cancel()
		require.ErrorIs(t, w.WriteFirst(ctx, conn.TextMessage("?")), context.DeadlineExceeded)
		require.Equal(t, row.held, w.HeldByWindow())
		require.False(t, w.HeldByWindow(), "since the last call")
		require.ErrorIs(t, w.AwaitPing(ctx), context.DeadlineExceeded)
		require.Empty(t, w.written())
		require.Equal(t, row.free, w.TryAcquire())
	})
}
