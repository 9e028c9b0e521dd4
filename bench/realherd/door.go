package realherd

import (
	"net"
	"sync"
	"sync/atomic"
	"time"
)

// door is a listener that admits so many connections per second. The others wait
// in the kernel's backlog, or are reset. Accept is called by one goroutine.
type door struct {
	*net.TCPListener
	pace   pace
	reject bool

	closing            chan struct{}
	once               sync.Once
	admitted, rejected atomic.Int64
}

func newDoor(l *net.TCPListener, perSecond float64, reject bool) *door {
	return &door{TCPListener: l, pace: newPace(perSecond), reject: reject, closing: make(chan struct{})}
}

// Accept returns the next one that is admitted.
func (d *door) Accept() (net.Conn, error) {
	for {
		if !d.reject && !d.rest() {
			return nil, net.ErrClosed
		}
		c, err := d.AcceptTCP()
		if err != nil {
			return nil, err
		}
		now := time.Now()
		if d.reject && d.pace.wait(now) > 0 {
			d.rejected.Add(1)
			_ = c.SetLinger(0) // a reset; if that fails, it is a close
			_ = c.Close()
			continue
		}
		d.pace.admit(now)
		d.admitted.Add(1)
		return c, nil
	}
}

// rest waits until one more may come. It returns false if the door was closed.
func (d *door) rest() bool {
	wait := d.pace.wait(time.Now())
	if wait == 0 {
		return true
	}
	t := time.NewTimer(wait)
	defer t.Stop()
	select {
	case <-t.C:
		return true
	case <-d.closing:
		return false
	}
}

// Close ends Accept.
func (d *door) Close() error {
	d.once.Do(func() { close(d.closing) })
	return d.TCPListener.Close()
}
