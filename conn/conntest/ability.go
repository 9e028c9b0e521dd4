package conntest

import (
	"context"
	"fmt"
	"time"

	"github.com/redial-go/redial/conn"
)

// able returns c with the optional abilities that are not nil, and no others.
func able(c conn.Conn, p conn.Pinger, i conn.Idler) conn.Conn {
	switch {
	case p != nil && i != nil:
		return struct {
			conn.Conn
			conn.Pinger
			conn.Idler
		}{c, p, i}
	case p != nil:
		return struct {
			conn.Conn
			conn.Pinger
		}{c, p}
	case i != nil:
		return struct {
			conn.Conn
			conn.Idler
		}{c, i}
	}
	return c
}

// fakePinger gives a Fake its ping.
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

// fakeIdler gives a Fake its clock.
type fakeIdler struct{ fake *Fake }

func (i fakeIdler) Idle() time.Duration {
	i.fake.mu.Lock()
	defer i.fake.mu.Unlock()
	return time.Since(i.fake.heard)
}
