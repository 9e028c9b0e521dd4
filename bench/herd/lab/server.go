package lab

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"net"
	"net/http"
	"sync/atomic"
	"syscall"
	"time"

	"github.com/coder/websocket"

	"github.com/redial-go/redial/bench/articles/storm"
)

// server is what a server process serves.
type server struct {
	listener *pacedListener
	http     *http.Server
	inner    atomic.Int64  // connections, or for a storm requests, under way
	answered atomic.Int64  // requests of a storm
	leaving  chan struct{} // closed when the requests of a storm are to end, whatever their age
}

// setup is what a server process gets on its command line.
type setup struct {
	Address  string        // host and port; port 0: one that is free
	Storm    *storm.Server // the server of a retry storm; nil: one of WebSockets
	Capacity float64       // connections admitted per second; 0: no limit
	Reject   bool          // the others are reset; else they wait
	Backlog  int           // at most so many wait; 0: as many as the kernel lets
	Hang     time.Duration // for so long connections are accepted and never answered, also not afterwards
}

// report is what a server process writes about itself, every reportEvery and when it
// is asked.
type report struct {
	At      int64 // wall clock, ns
	Asked   bool  // it is an answer
	Address string
	Backlog int        // connections that the kernel lets wait for this listener; 0: unknown
	Waiting int        // of them, now
	Total   arrivals   // since it listens
	Recent  []arrivals // since the last report
	Inner   int64      // under way now
}

const reportEvery = 100 * time.Millisecond

// open listens.
func (s setup) open() (*server, error) {
	l, err := s.listen()
	if err != nil {
		return nil, fmt.Errorf("listen %s: %w", s.Address, err)
	}
	if s.Backlog > 0 {
		if err := setBacklog(l, s.Backlog); err != nil {
			return nil, errors.Join(fmt.Errorf("listen %s: %w", s.Address, err), l.Close())
		}
	}
	y := &server{listener: newPacedListener(l, s), leaving: make(chan struct{})}
	handler := y.hold
	if s.Storm != nil {
		handler = func(w http.ResponseWriter, _ *http.Request) { y.serveStorm(w, *s.Storm) }
	}
	y.http = &http.Server{Handler: http.HandlerFunc(handler)}
	return y, nil
}

// Ports below those that the kernel gives to clients: a port that is given up for an
// outage must not go to another socket meanwhile.
const (
	firstPort = 20_000
	ports     = 10_000
)

func (s setup) listen() (*net.TCPListener, error) {
	host, port, err := net.SplitHostPort(s.Address)
	if err != nil {
		return nil, err
	}
	for try := 1; ; try++ {
		address := s.Address
		if port == "0" {
			address = fmt.Sprintf("%s:%d", host, firstPort+rand.IntN(ports))
		}
		l, err := net.Listen("tcp", address)
		switch {
		case err == nil:
			return l.(*net.TCPListener), nil
		case port != "0" || try == 100 || !errors.Is(err, syscall.EADDRINUSE):
			return nil, err
		}
	}
}

// report counts.
func (y *server) report() report {
	r := report{
		At: time.Now().UnixNano(), Address: y.listener.Addr().String(), Inner: y.inner.Load(),
	}
	r.Total, r.Recent = y.listener.take()
	r.Waiting, r.Backlog = backlog(y.listener.TCPListener)
	return r
}

// hold keeps a WebSocket until the client hangs up.
func (y *server) hold(w http.ResponseWriter, r *http.Request) {
	c, err := websocket.Accept(w, r, nil)
	if err != nil {
		return // the client was answered
	}
	defer c.CloseNow()
	y.inner.Add(1)
	defer y.inner.Add(-1)
	for {
		if _, _, err := c.Read(context.Background()); err != nil {
			return
		}
	}
}

// stormPoll is how often a request of a storm looks whether it is done.
const stormPoll = 50 * time.Millisecond

// serveStorm answers a request of a storm. It takes as long as the model says for the number of
// requests that are under way each time it looks. It does not notice that the client has left, but ends
// when the server leaves.
func (y *server) serveStorm(w http.ResponseWriter, model storm.Server) {
	y.inner.Add(1)
	defer y.inner.Add(-1)
	began := time.Now()
	t := time.NewTicker(stormPoll)
	defer t.Stop()
	for {
		select {
		case now := <-t.C:
			if now.Sub(began) > model.Delay(int(y.inner.Load())) {
				y.answered.Add(1)
				w.WriteHeader(http.StatusNoContent)
				return
			}
		case <-y.leaving:
			w.WriteHeader(http.StatusServiceUnavailable)
			return
		}
	}
}
