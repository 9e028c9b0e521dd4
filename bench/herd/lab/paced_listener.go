package lab

import (
	"io"
	"net"
	"sync"
	"time"

	"github.com/redial-go/redial/bench/herd/fleet"
)

// pacedListener is a listener that admits so many connections per second. The others wait
// in the kernel's backlog, or are reset. At first it may hang: it never answers what it
// accepts then. Accept is called by one goroutine.
type pacedListener struct {
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

func newPacedListener(l *net.TCPListener, s setup) *pacedListener {
	return &pacedListener{TCPListener: l, pace: newPace(s.Capacity), reject: s.Reject, opens: time.Now().Add(s.Hang), closing: make(chan struct{})}
}

// Accept returns the next one that is admitted.
func (l *pacedListener) Accept() (net.Conn, error) {
	for {
		if !l.reject && !time.Now().Before(l.opens) && !l.rest() {
			return nil, net.ErrClosed
		}
		c, err := l.AcceptTCP()
		if err != nil {
			return nil, err
		}
		now := time.Now()
		if now.Before(l.opens) {
			go swallow(c) // until the client hangs up, or the process ends
			continue
		}
		if l.reject && l.pace.wait(now) > 0 {
			l.count(now, 0, 1)
			_ = c.SetLinger(0) // a reset; if that fails, it is a close
			_ = c.Close()
			continue
		}
		l.pace.admit(now)
		l.count(now, 1, 0)
		return c, nil
	}
}

// swallow never answers a connection.
func swallow(c net.Conn) {
	_, _ = io.Copy(io.Discard, c)
	_ = c.Close()
}

// rest waits until one more may come. It returns false if the listener was closed.
func (l *pacedListener) rest() bool {
	wait := l.pace.wait(time.Now())
	if wait == 0 {
		return true
	}
	t := time.NewTimer(wait)
	defer t.Stop()
	select {
	case <-t.C:
		return true
	case <-l.closing:
		return false
	}
}

func (l *pacedListener) count(now time.Time, admitted, rejected int) {
	l.mu.Lock()
	defer l.mu.Unlock()
	at := now.UnixNano()
	at -= at % int64(fleet.Bin)
	if n := len(l.recent); n == 0 || l.recent[n-1].At != at {
		l.recent = append(l.recent, arrivals{At: at})
	}
	for _, a := range []*arrivals{&l.total, &l.recent[len(l.recent)-1]} {
		a.Admitted += admitted
		a.Rejected += rejected
	}
}

// take returns the counts of all, and by bin of those since it was last called; a bin
// may be in two parts.
func (l *pacedListener) take() (total arrivals, recent []arrivals) {
	l.mu.Lock()
	defer l.mu.Unlock()
	recent, l.recent = l.recent, nil
	return l.total, recent
}

// Close ends Accept.
func (l *pacedListener) Close() error {
	l.once.Do(func() { close(l.closing) })
	return l.TCPListener.Close()
}
