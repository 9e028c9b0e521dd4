package conntest

import (
	"context"
	"fmt"
	"net"
	"time"

	"github.com/redial-go/redial/conn"
)

// withAbilities returns c as a [conn.Transport] by t, and as a [conn.Pinger] by p; nil: not as
// this one. Each set of abilities is a type of its own, because a type assertion sees all methods
// of a type.
func withAbilities(c conn.Conn, t conn.Transport, p conn.Pinger) conn.Conn {
	switch {
	case t != nil && p != nil:
		return struct {
			conn.Conn
			conn.Transport
			conn.Pinger
		}{c, t, p}
	case t != nil:
		return struct {
			conn.Conn
			conn.Transport
		}{c, t}
	case p != nil:
		return struct {
			conn.Conn
			conn.Pinger
		}{c, p}
	}
	return c
}

// fakePinger is the ping of a Fake.
type fakePinger struct{ fake *Fake }

// Ping waits for the answer, which takes PongAfter and a Read under way.
func (p fakePinger) Ping(ctx context.Context) error {
	f := p.fake
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.end.cause == nil {
		f.pings++
	}
	stop := context.AfterFunc(ctx, f.wake)
	defer stop()
	due := time.Now().Add(f.pong)
	timer := time.AfterFunc(f.pong, f.wake)
	defer timer.Stop()
	for {
		switch {
		case f.end.cause != nil:
			return fmt.Errorf("ping: %w", f.end.cause)
		case ctx.Err() != nil:
			return fmt.Errorf("ping: %w", context.Cause(ctx))
		case f.reading && !f.mute && !time.Now().Before(due):
			f.heard = time.Now()
			return nil
		}
		f.changed.Wait()
	}
}

// fakeTransport is the [conn.Transport] of a Fake.
type fakeTransport struct{ fake *Fake }

func (t fakeTransport) ReadBuffer(buffer func(size int) []byte) (conn.Message, error) {
	return t.fake.read(buffer)
}

func (t fakeTransport) BeforeBlock(f func()) bool {
	t.fake.set(func() { t.fake.waits = f })
	return true
}

func (t fakeTransport) WriteBatch(ms []conn.Message) (n int, err error) {
	for n < len(ms) && err == nil {
		if err = t.fake.Write(ms[n]); err == nil {
			n++
		}
	}
	t.fake.set(func() { t.fake.batches = append(t.fake.batches, n) })
	return n, err
}

func (t fakeTransport) Silence() time.Duration {
	t.fake.mu.Lock()
	defer t.fake.mu.Unlock()
	return time.Since(t.fake.heard)
}

func (t fakeTransport) HungUp() bool {
	t.fake.mu.Lock()
	defer t.fake.mu.Unlock()
	return !t.fake.end.closed && (t.fake.hungUp || t.fake.end.cause != nil)
}

// LocalAddr returns nil: a Fake has no network.
func (t fakeTransport) LocalAddr() net.Addr { return nil }
