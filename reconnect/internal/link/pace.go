package link

import (
	"context"
	"net"
	"sync/atomic"
	"time"

	"github.com/redial-go/redial/reconnect/budget"
	"github.com/redial-go/redial/reconnect/internal/xsync"
)

// pace is the rolling window of one link, for what we send by it. A nil pace lets all
// through. Its user holds the slot of the link, so that nobody else writes meanwhile.
type pace struct {
	window budget.Window
	woken  xsync.Signal  // the caller of wait may have nothing to write any more
	sleeps atomic.Uint64 // begins and ends of waits for the window: odd while there is one
	late   atomic.Bool   // a probe was not written in its time, because of the window
}

func newPace(w budget.Window) *pace {
	if w.N == 0 {
		return nil
	}
	return &pace{window: w}
}

// wait waits until a message may be written, and returns how many may, most at most. It ends
// with ctx, life and l, with an error, and with 0 if there is nothing to write, which it asks
// before each wait and when it is woken. Without nothing, there always is.
func (p *pace) wait(ctx context.Context, life *xsync.Context, l *Link, most int, nothing func() bool) (int, error) {
	if p == nil {
		return most, nil
	}
	for {
		at := time.Now()
		if n := p.window.Free(at); n > 0 {
			return min(n, most), nil
		}
		woken := p.woken.Wait()
		if nothing != nil && nothing() {
			return 0, nil
		}
		if err := p.sleep(ctx, life, l, woken, p.window.At(at).Sub(at)); err != nil {
			return 0, err
		}
	}
}

// sleep waits for d, until it is woken, or until ctx, life or l ends, which is an error.
func (p *pace) sleep(ctx context.Context, life *xsync.Context, l *Link, woken <-chan struct{}, d time.Duration) error {
	p.sleeps.Add(1)
	defer p.sleeps.Add(1)
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
		return nil
	case <-woken:
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	case <-l.Done():
		return l.Cause(net.ErrClosed)
	case <-life.Done():
		return net.ErrClosed
	}
}

// wake lets a wait ask again whether there is nothing to write.
func (p *pace) wake() {
	if p != nil {
		p.woken.Broadcast()
	}
}

// wrote notes that n messages were written, or begun.
func (p *pace) wrote(n int) {
	if p != nil {
		at := time.Now()
		for range n {
			p.window.Take(at)
		}
	}
}
