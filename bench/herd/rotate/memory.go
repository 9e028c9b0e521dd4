package rotate

import (
	"context"
	"fmt"
	"runtime"
	"time"

	"github.com/redial-go/redial/dialer"
	"github.com/redial-go/redial/reconnect"
)

// Held is the live heap and the stacks of a process, in bytes for each of its connections.
type Held struct {
	Before int // one session each
	During int // two sessions each
	After  int // one again
}

// settle is how long what was opened or closed has to end.
const settle = time.Second

// Memory opens n connections, replaces the session of each, and measures them before, while the
// two overlap, and after that. The overlap must be long enough to replace all.
func Memory(ctx context.Context, n int, overlap time.Duration) (h Held, err error) {
	server, err := start(ctx, setup{})
	if err != nil {
		return h, err
	}
	defer server.end()
	d := &dialer.WebSocket{URL: "ws://" + server.address}
	all := make([]*reconnect.Conn, 0, n)
	closeAll := func() {
		for _, c := range all {
			c.Close()
		}
		for _, c := range all {
			<-c.Done()
		}
		all = all[:0]
	}
	defer closeAll()
	openAll := func() error {
		for range n {
			c, err := open(d, &reconnect.Options{
				OnMessage: func(context.Context, reconnect.Message) {}, Rotate: reconnect.Rotation{Drain: overlap},
			})
			if err != nil {
				return err
			}
			all = append(all, c)
			if err := c.AwaitReady(ctx); err != nil {
				return err
			}
		}
		return nil
	}
	if err := openAll(); err != nil { // because the runtime keeps some of what the first goroutines have needed
		return h, err
	}
	closeAll()
	clear(all[:n])
	base, err := held(ctx)
	if err != nil {
		return h, err
	}
	if err := openAll(); err != nil {
		return h, err
	}
	each := func() (int, error) {
		bytes, err := held(ctx)
		return (bytes - base) / n, err
	}
	if h.Before, err = each(); err != nil {
		return h, err
	}
	for _, c := range all {
		c.Rotate(c.Status().Session, reconnect.Advice{})
	}
	if err := until(ctx, all, func(s reconnect.Status) bool { return s.Session > 1 && s.Rotating }); err != nil {
		return h, err
	}
	if h.During, err = each(); err != nil {
		return h, err
	}
	for _, c := range all {
		if !c.Status().Rotating {
			return h, fmt.Errorf("measure memory: the overlap of %v was over before", overlap)
		}
	}
	if err := until(ctx, all, func(s reconnect.Status) bool { return !s.Rotating }); err != nil {
		return h, err
	}
	h.After, err = each()
	return h, err
}

// until waits until the status of each Conn is as wanted.
func until(ctx context.Context, all []*reconnect.Conn, wanted func(reconnect.Status) bool) error {
	for _, c := range all {
		for !wanted(c.Status()) {
			if err := pause(ctx, 10*time.Millisecond); err != nil {
				return err
			}
		}
	}
	return nil
}

// held returns, after a pause, the bytes that are alive on the heap, with the stacks.
func held(ctx context.Context) (int, error) {
	if err := pause(ctx, settle); err != nil {
		return 0, err
	}
	for range 3 {
		runtime.GC()
	}
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return int(m.HeapAlloc + m.StackInuse), nil
}
