package conntest

import (
	"context"
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
	pong := get(f, func() time.Duration {
		if f.cause == nil {
			f.pings++
		}
		return f.pong
	})
	due := time.Now().Add(pong)
	timer := time.AfterFunc(pong, func() { f.set(func() {}) })
	defer timer.Stop()
	return f.await(ctx, "ping", func() bool {
		answered := f.reading && !f.mute && ctx.Err() == nil && !time.Now().Before(due)
		if answered {
			f.heard = time.Now()
		}
		return answered
	})
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
	return time.Since(get(t.fake, func() time.Time { return t.fake.heard }))
}

func (t fakeTransport) HungUp() bool {
	f := t.fake
	return get(f, func() bool { return !f.closed && (f.hungUp || f.cause != nil) })
}

// LocalAddr returns nil: a Fake has no network.
func (t fakeTransport) LocalAddr() net.Addr { return nil }
