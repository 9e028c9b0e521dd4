package reconnect_test

import (
	"context"
	"math"
	"runtime"
	"sync"
	"testing"

	"github.com/coder/websocket"
	"github.com/stretchr/testify/require"

	"github.com/redial-go/redial/dialer"
	"github.com/redial-go/redial/reconnect"
	"github.com/redial-go/redial/reconnect/internal/conntests/scene"
)

// The tests of what a connection holds while nothing goes on. They measure the live heap and
// the stacks of many connections, to which a peer in a process of its own answers.

const idleConns = 300

// heldBy returns how many bytes each of many connections holds that open has opened: on the heap
// and the stacks, and on the heap alone. As many are opened and closed before, because the
// runtime keeps some of what the first goroutines of a process have needed. The least of three
// measurements counts, because a connection makes some channels only if a goroutine has to wait
// while it is opened, which on a loaded machine happens more often.
func heldBy(open func() (end func())) (all, heap int64) {
	ends := make([]func(), idleConns)
	all, heap = math.MaxInt64, math.MaxInt64
	for round := range 4 {
		before, stack := held()
		for i := range ends {
			ends[i] = open()
		}
		after, stackAfter := held()
		if now := (after - before) / idleConns; round > 0 {
			all, heap = min(all, now), min(heap, now-(stackAfter-stack)/idleConns)
		}
		for i, end := range ends {
			end()
			ends[i] = nil
		}
	}
	return all, heap
}

// openIdle opens a Conn to url and waits until it has received so many messages. Each of them
// is read.
func openIdle(t *testing.T, d *dialer.WebSocket, push bool, messages int, layers ...*reconnect.Layer) (end func()) {
	o, came := &reconnect.Options{Layers: layers}, make(chan struct{}, messages)
	if push {
		o.OnMessage = func(context.Context, reconnect.Message) { came <- struct{}{} }
	}
	c, err := reconnect.New(d, o)
	require.NoError(t, err)
	require.NoError(t, c.AwaitReady(t.Context()))
	for range messages {
		if push {
			<-came
			continue
		}
		_, err := c.Read(t.Context(), nil)
		require.NoError(t, err)
	}
	return func() { scene.CloseAndWait(c) }
}

// What a large message needs is given back. A stack that has grown would be 4 KiB larger; that
// figure is not exact, because the runtime keeps stacks that have been used.
func TestLargeMessagesDoNotEnlargeAnIdleConn(t *testing.T) {
	if scene.RaceEnabled() {
		t.Skip("the race detector takes memory, too")
	}
	url := startPeer(t)
	for name, push := range map[string]bool{"push": true, "pull": false} {
		quiet, busy := &dialer.WebSocket{URL: url}, &dialer.WebSocket{URL: url + "?size=40000&count=20"}
		heap, stack := int64(math.MaxInt64), int64(math.MaxInt64)
		for round := 0; round < 5 && (heap >= 2500 || stack >= 3000); round++ {
			before, heapBefore := heldBy(func() func() { return openIdle(t, quiet, push, 0) })
			after, heapAfter := heldBy(func() func() { return openIdle(t, busy, push, 20) })
			t.Logf("%s: %d bytes, and %d after 20 messages of 40 kB; heap %d and %d",
				name, before, after, heapBefore, heapAfter)
			heap = min(heap, heapAfter-heapBefore)
			stack = min(stack, (after-heapAfter)-(before-heapBefore))
		}
		require.Less(t, heap, int64(2500), name)
		require.Less(t, stack, int64(3000), name)
	}
}

// An idle Conn holds less on the heap than a third of what a connection of coder/websocket alone holds. Their stacks
// are equal.
func TestIdleConnHoldsLittle(t *testing.T) {
	if scene.RaceEnabled() {
		t.Skip("the race detector takes memory, too")
	}
	const maxIdle, maxLayers = int64(3100), int64(200)
	url := startPeer(t)
	d := &dialer.WebSocket{URL: url}
	layer := &reconnect.Layer{Receive: func(reconnect.Message) bool { return false }}
	plain, push, layers := int64(math.MaxInt64), int64(math.MaxInt64), int64(math.MaxInt64)
	for range 10 { // see heldBy: with thirty programs beside, three measurements may all be too large
		least := func(most int64, open func() func()) int64 {
			_, heap := heldBy(open)
			return min(most, heap)
		}
		plain = least(plain, func() func() { return plainIdle(t, url) })
		push = least(push, func() func() { return openIdle(t, d, true, 0) })
		layers = least(layers, func() func() { return openIdle(t, d, true, 0, layer, layer) })
		if push < maxIdle && layers-push < maxLayers {
			break
		}
	}
	t.Logf("coder/websocket: %d bytes, a Conn: %d bytes, with two layers: %d bytes", plain, push, layers)
	require.Less(t, push, maxIdle, "2,930 on a machine without load")
	require.Less(t, push, plain/3)
	require.Less(t, layers-push, maxLayers, "the list of the layers, and no more: 20 to 65 on a machine without load")
}

// Opening a Conn allocates less than opening a connection of coder/websocket alone does by
// package http, which takes about 26 kB.
func TestOpeningAConnAllocatesLittle(t *testing.T) {
	if scene.RaceEnabled() {
		t.Skip("the race detector takes memory, too")
	}
	d := &dialer.WebSocket{URL: startPeer(t)}
	openIdle(t, d, true, 0)()
	held() // so that no sync.Pool has anything of the tests before
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	for range idleConns {
		defer openIdle(t, d, true, 0)()
	}
	runtime.ReadMemStats(&after)
	bytes, count := (after.TotalAlloc-before.TotalAlloc)/idleConns, (after.Mallocs-before.Mallocs)/idleConns
	t.Logf("%d bytes in %d allocations", bytes, count)
	require.Less(t, bytes, uint64(16_000))
	require.Less(t, count, uint64(215))
}

// plainIdle opens a connection of coder/websocket alone, which a goroutine reads.
func plainIdle(t *testing.T, url string) (end func()) {
	c, _, err := websocket.Dial(t.Context(), url, nil)
	require.NoError(t, err)
	var reader sync.WaitGroup
	reader.Go(func() {
		for err := error(nil); err == nil; {
			_, _, err = c.Read(context.Background())
		}
	})
	return func() { c.CloseNow(); reader.Wait() }
}
