package realherd

import (
	"io"
	"net"
	"sync"
	"time"

	"github.com/redial-go/redial/bench/fleet"
)

// door is a listener that admits so many connections per second. The others wait
// in the kernel's backlog, or are reset. At first it may hang: what it accepts then is
// never answered. Accept is called by one goroutine.
type door struct {
	*net.TCPListener
	pace   pace
	reject bool
	opens  time.Time // until then it hangs

	closing chan struct{}
	once    sync.Once

	mu     sync.Mutex // guards what follows
	total  arrivals
	recent []arrivals // by fleet.Bin, since they were last taken
}

// arrivals are the connections that came in a fleet.Bin of wall-clock time, or in all.
type arrivals struct {
	At       int64 // beginning of the bin, ns
	Admitted int
	Rejected int
}

func newDoor(l *net.TCPListener, s setup) *door {
	return &door{TCPListener: l, pace: newPace(s.Capacity), reject: s.Reject, opens: time.Now().Add(s.Hang), closing: make(chan struct{})}
}

// Accept returns the next one that is admitted.
func (d *door) Accept() (net.Conn, error) {
	for {
		if !d.reject && !time.Now().Before(d.opens) && !d.rest() {
			return nil, net.ErrClosed
		}
		c, err := d.AcceptTCP()
		if err != nil {
			return nil, err
		}
		now := time.Now()
		if now.Before(d.opens) {
			go swallow(c) // until the client hangs up, or the process ends
			continue
		}
		if d.reject && d.pace.wait(now) > 0 {
			d.count(now, 0, 1)
			_ = c.SetLinger(0) // a reset; if that fails, it is a close
			_ = c.Close()
			continue
		}
		d.pace.admit(now)
		d.count(now, 1, 0)
		return c, nil
	}
}

// swallow never answers a connection.
func swallow(c net.Conn) {
	_, _ = io.Copy(io.Discard, c)
	_ = c.Close()
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

func (d *door) count(now time.Time, admitted, rejected int) {
	d.mu.Lock()
	defer d.mu.Unlock()
	at := now.UnixNano()
	at -= at % int64(fleet.Bin)
	if n := len(d.recent); n == 0 || d.recent[n-1].At != at {
		d.recent = append(d.recent, arrivals{At: at})
	}
	for _, a := range []*arrivals{&d.total, &d.recent[len(d.recent)-1]} {
		a.Admitted += admitted
		a.Rejected += rejected
	}
}

// take returns the counts of all, and by bin of those since it was last called; a bin
// may be in two parts.
func (d *door) take() (total arrivals, recent []arrivals) {
	d.mu.Lock()
	defer d.mu.Unlock()
	recent, d.recent = d.recent, nil
	return d.total, recent
}

// Close ends Accept.
func (d *door) Close() error {
	d.once.Do(func() { close(d.closing) })
	return d.TCPListener.Close()
}
