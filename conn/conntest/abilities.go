package conntest

import (
	"context"
	"fmt"
	"time"

	"github.com/redial-go/redial/conn"
)

// abilities are what a Conn may have beyond [conn.Conn]; nil: not this one.
type abilities struct {
	conn.Pinger
	conn.Idler
	conn.BatchWriter
	conn.HangupDetector
}

// abilitiesOf returns the abilities of c.
func abilitiesOf(c conn.Conn) (a abilities) {
	a.Pinger, _ = c.(conn.Pinger)
	a.Idler, _ = c.(conn.Idler)
	a.BatchWriter, _ = c.(conn.BatchWriter)
	a.HangupDetector, _ = c.(conn.HangupDetector)
	return a
}

// addTo returns c with the abilities that are not nil, and no others. Each set of them is a
// type of its own, because a type assertion sees all methods of a type.
func (a abilities) addTo(c conn.Conn) conn.Conn {
	switch [4]bool{a.Pinger != nil, a.Idler != nil, a.BatchWriter != nil, a.HangupDetector != nil} {
	case [4]bool{true, false, false, false}:
		return struct {
			conn.Conn
			conn.Pinger
		}{c, a.Pinger}
	case [4]bool{false, true, false, false}:
		return struct {
			conn.Conn
			conn.Idler
		}{c, a.Idler}
	case [4]bool{true, true, false, false}:
		return struct {
			conn.Conn
			conn.Pinger
			conn.Idler
		}{c, a.Pinger, a.Idler}
	case [4]bool{false, false, true, false}:
		return struct {
			conn.Conn
			conn.BatchWriter
		}{c, a.BatchWriter}
	case [4]bool{true, false, true, false}:
		return struct {
			conn.Conn
			conn.Pinger
			conn.BatchWriter
		}{c, a.Pinger, a.BatchWriter}
	case [4]bool{false, true, true, false}:
		return struct {
			conn.Conn
			conn.Idler
			conn.BatchWriter
		}{c, a.Idler, a.BatchWriter}
	case [4]bool{true, true, true, false}:
		return struct {
			conn.Conn
			conn.Pinger
			conn.Idler
			conn.BatchWriter
		}{c, a.Pinger, a.Idler, a.BatchWriter}
	case [4]bool{false, false, false, true}:
		return struct {
			conn.Conn
			conn.HangupDetector
		}{c, a.HangupDetector}
	case [4]bool{true, false, false, true}:
		return struct {
			conn.Conn
			conn.Pinger
			conn.HangupDetector
		}{c, a.Pinger, a.HangupDetector}
	case [4]bool{false, true, false, true}:
		return struct {
			conn.Conn
			conn.Idler
			conn.HangupDetector
		}{c, a.Idler, a.HangupDetector}
	case [4]bool{true, true, false, true}:
		return struct {
			conn.Conn
			conn.Pinger
			conn.Idler
			conn.HangupDetector
		}{c, a.Pinger, a.Idler, a.HangupDetector}
	case [4]bool{false, false, true, true}:
		return struct {
			conn.Conn
			conn.BatchWriter
			conn.HangupDetector
		}{c, a.BatchWriter, a.HangupDetector}
	case [4]bool{true, false, true, true}:
		return struct {
			conn.Conn
			conn.Pinger
			conn.BatchWriter
			conn.HangupDetector
		}{c, a.Pinger, a.BatchWriter, a.HangupDetector}
	case [4]bool{false, true, true, true}:
		return struct {
			conn.Conn
			conn.Idler
			conn.BatchWriter
			conn.HangupDetector
		}{c, a.Idler, a.BatchWriter, a.HangupDetector}
	case [4]bool{true, true, true, true}:
		return struct {
			conn.Conn
			conn.Pinger
			conn.Idler
			conn.BatchWriter
			conn.HangupDetector
		}{c, a.Pinger, a.Idler, a.BatchWriter, a.HangupDetector}
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

// fakeIdler is the Idle of a Fake.
type fakeIdler struct{ fake *Fake }

func (i fakeIdler) Idle() time.Duration {
	i.fake.mu.Lock()
	defer i.fake.mu.Unlock()
	return time.Since(i.fake.heard)
}

// fakeBatcher is the WriteBatch of a Fake.
type fakeBatcher struct{ fake *Fake }

func (b fakeBatcher) WriteBatch(ms []conn.Message) (n int, err error) {
	for n < len(ms) && err == nil {
		if err = b.fake.Write(ms[n]); err == nil {
			n++
		}
	}
	b.fake.set(func() { b.fake.batches = append(b.fake.batches, n) })
	return n, err
}

// fakeDetector is the HungUp of a Fake.
type fakeDetector struct{ fake *Fake }

func (d fakeDetector) HungUp() bool {
	d.fake.mu.Lock()
	defer d.fake.mu.Unlock()
	return !d.fake.end.closed && (d.fake.hungUp || d.fake.end.cause != nil)
}
