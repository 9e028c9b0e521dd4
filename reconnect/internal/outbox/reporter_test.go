package outbox

import (
	"context"
	"runtime"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/redial-go/redial/reconnect/internal/outbox/queue"
	"github.com/redial-go/redial/reconnect/internal/xsync"
)

// slowly is an OnReceipt that takes a second.
func slowly(*Receipt) { time.Sleep(time.Second) }

// A slow OnReceipt delays no write, is called for one message after the other, and End waits for it.
func TestReceiptsComeOneAfterTheOther(t *testing.T) {
	play(t, Options{Receipt: slowly}, func(t *testing.T, w *world) {
		w.attach()
		w.send(out("a"))
		w.want("1 < a", "a: written 1 x1 0s-0s")
		w.send(out("b"))
		w.want("1 < b")
		w.write("C", 0)
		w.want("1 < C", "C = written 1")
		time.Sleep(time.Second / 2)
		w.send(out("d"))
		w.want("1 < d @500ms")
		w.End()
		w.want("b: written 1 x1 0s-0s @1s", "d: written 1 x1 500ms-500ms @2s", "awaits OnReceipt @500ms")
		require.Equal(t, 3*time.Second, time.Since(w.start))
		require.Equal(t, reporter{o: w.reporter.o}.used, w.reporter.used, "no memory is held")
	})
}

// Await ends its goroutine, as a hook of the user may.
func TestEndWaitsForOnReceiptAlthoughAwaitDoesNotReturn(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		returned := false
		r := reporter{o: &Options{
			Receipt: func(*Receipt) { time.Sleep(time.Hour); returned = true },
			Await:   func(<-chan struct{}, string) { runtime.Goexit() },
		}}
		e := new(entry)
		require.True(t, r.add(chain{e, e}))
		go r.run()
		synctest.Wait()
		ends := xsync.Go(r.end)
		<-ends.Done
		require.True(t, ends.Returned)
		require.True(t, returned)
	})
}

// End waits for no OnReceipt if none runs, nor for a timer.
func TestEndWaitsForNothingThatDoesNotRun(t *testing.T) {
	play(t, Options{Down: Keep}, func(t *testing.T, w *world) {
		w.send(until(time.Second, "a"))
		time.Sleep(time.Second)
		w.want("a: dropped 0 x0 (too late to be sent) @1s")
		w.attach()
		w.write("B", 0)
		w.want("1 < B @1s", "B = written 1")
		w.write("C", 0)
		w.want("1 < C @1s", "C = written 1")
		w.lose(w.peers[0], nil)
		w.send(until(time.Minute, "d"))
		w.Close()
		w.want("d: dropped 0 x0 (closed) @1s")
		w.End()
		require.Equal(t, time.Second, time.Since(w.start))
		_, cut := w.Report()
		require.True(t, cut, "it was cut by the first Close")
	})
	play(t, Options{Down: Keep}, func(t *testing.T, w *world) {
		w.write("A", 0)
		w.End()
		w.want("A = dropped 0 (closed)")
	})
}

func TestAwaitReceiptsWaitsForNoLaterReceipts(t *testing.T) {
	play(t, Options{Receipt: slowly, Down: Keep}, func(t *testing.T, w *world) {
		require.NoError(t, w.AwaitReceipts(t.Context()))
		w.send(out("a"), out("b"))
		w.attach()
		w.want("1 < a+b", "a: written 1 x1 0s-0s")
		time.AfterFunc(time.Second, func() { w.send(out("c")) })
		require.NoError(t, w.AwaitReceipts(t.Context()))
		require.Equal(t, 2*time.Second, time.Since(w.start))
		ctx, cancel := context.WithTimeoutCause(t.Context(), time.Second/2, errLost)
		defer cancel()
		require.Equal(t, errLost, w.AwaitReceipts(ctx))
		require.Equal(t, 5*time.Second/2, time.Since(w.start))
		require.NoError(t, w.AwaitReceipts(t.Context()))
		require.Equal(t, 3*time.Second, time.Since(w.start))
		w.want("1 < c @1s", "b: written 1 x1 0s-0s @1s", "c: written 1 x1 1s-1s @2s")
	})
}

// When as many receipts wait as messages may, or as much data, nothing more is accepted until OnReceipt is called.
func TestReceiptsThatWaitTakeRoom(t *testing.T) {
	for name, limits := range map[string]queue.Limits{"messages": {Messages: 2, Bytes: 100}, "bytes": {Messages: 100, Bytes: 4}} {
		t.Run(name, func(t *testing.T) {
			play(t, Options{Receipt: slowly, Limits: limits}, func(t *testing.T, w *world) {
				w.attach()
				for _, data := range []string{"aa", "bb", "cc", "dd", "ee"} {
					w.send(out(data)) // the first one is being reported, and two wait
					synctest.Wait()
					require.True(t, strings.HasPrefix(w.given[len(w.given)-1], "1 < "+data))
					if data < "cc" {
						continue
					}
					_, reported := w.Progress()
					err := w.Accept(out("xx"))
					require.ErrorIs(t, err, ErrFull)
					require.EqualError(t, err, "outbox is full: 2 receipts wait for Outbox.OnReceipt")
					time.Sleep(time.Second - 1)
					require.False(t, closed(reported))
					time.Sleep(time.Nanosecond)
					require.True(t, closed(reported))
				}
				w.given, w.fates = nil, nil
			})
		})
	}
}

// An OnReceipt that ends its goroutine has been called, and is called for the next message.
func TestAnOnReceiptThatDoesNotReturnIsCalledForTheNext(t *testing.T) {
	play(t, Options{Down: Keep, Receipt: func(*Receipt) { time.Sleep(time.Second); runtime.Goexit() }}, func(t *testing.T, w *world) {
		w.send(out("a"), out("b"))
		w.attach()
		w.want("1 < a+b", "a: written 1 x1 0s-0s")
		require.NoError(t, w.AwaitReceipts(t.Context()))
		w.want("b: written 1 x1 0s-0s @1s")
		require.Equal(t, 2*time.Second, time.Since(w.start))
		w.End()
	})
}

// There is one reporter at a time, though it may begin late.
func TestTheReporterIsStartedOnce(t *testing.T) {
	called := ""
	r := reporter{o: &Options{Receipt: func(r *Receipt) { called += string(r.Out.Data) }}}
	entryOf := func(data string) *entry { e := new(entry); e.Value.Out = *out(data); return e }
	require.False(t, r.add(chain{}), "there is nothing to report")
	require.True(t, r.add(chained(entryOf("a"))))
	require.False(t, r.add(chained(entryOf("b"), entryOf("c"))))
	r.run()
	r.runs.Wait()
	require.Equal(t, "abc", called)
	require.True(t, r.add(chained(entryOf("d"))))
	progress := r.progress.Wait()
	r.next()
	<-progress // there is room again when the call begins
}
