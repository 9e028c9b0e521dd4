package drain_test

import (
	"context"
	"fmt"
	"net"
	"net/http"
	"sync"
	"testing"
	"time"

	"github.com/coder/websocket"
	"github.com/stretchr/testify/require"

	"github.com/redial-go/redial/reconnect/drain"
)

// source makes the numbers from 1 on, as time goes by. All servers have the same.
type source struct {
	mu    sync.Mutex // guards what follows
	last  int
	newer chan struct{} // closed when there is a newer one
}

// run makes numbers until ctx ends.
func (s *source) run(ctx context.Context) {
	tick := time.NewTicker(10 * time.Millisecond)
	defer tick.Stop()
	for {
		select {
		case <-tick.C:
			s.mu.Lock()
			s.last++
			close(s.newer)
			s.newer = make(chan struct{})
			s.mu.Unlock()
		case <-ctx.Done():
			return
		}
	}
}

func (s *source) newest() (last int, newer <-chan struct{}) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.last, s.newer
}

// generation is a server that is replaced by the next one. A client says "from 7", and gets all
// numbers from 7 on, each with the name of the server. If it can be warned it gets "leave" and a
// time.
type generation struct {
	*drain.Group
	net.Listener // whose connections come from a balancer
	name         string
	warns        bool
	source       *source
	accepted     chan net.Conn
	closed       chan struct{}
}

// start starts a server, which ends with the test.
func (g *generation) start(t *testing.T, o drain.Options) {
	var err error
	g.Group, err = drain.New(&o)
	require.NoError(t, err)
	g.accepted, g.closed = make(chan net.Conn), make(chan struct{})
	server := &http.Server{Handler: g.Handler(http.HandlerFunc(g.serve))}
	var serving sync.WaitGroup
	serving.Go(func() { server.Serve(g) }) // waited for below
	t.Cleanup(func() {
		server.Close()
		serving.Wait()
	})
}

func (g *generation) Accept() (net.Conn, error) {
	select {
	case c := <-g.accepted:
		return c, nil
	case <-g.closed:
		return nil, net.ErrClosed
	}
}

func (g *generation) Close() error {
	close(g.closed)
	return nil
}

func (g *generation) serve(w http.ResponseWriter, r *http.Request) {
	c, err := websocket.Accept(w, r, nil)
	if err != nil {
		return
	}
	defer c.CloseNow()
	closer := func(code int, reason string) error { return c.Close(websocket.StatusCode(code), reason) }
	notice := func(by time.Time) {
		c.Write(context.Background(), websocket.MessageText, fmt.Appendf(nil, "leave %d", by.UnixNano()))
	}
	if !g.warns {
		notice = nil
	}
	defer g.AddNotice(closer, notice).Remove()
	_, first, err := c.Read(r.Context())
	var next int
	if err != nil {
		return
	}
	fmt.Sscanf(string(first), "from %d", &next)
	for ctx := c.CloseRead(r.Context()); ; {
		last, newer := g.source.newest()
		for ; next <= last; next++ {
			if c.Write(ctx, websocket.MessageText, fmt.Appendf(nil, "%d %s", next, g.name)) != nil {
				return
			}
		}
		select {
		case <-newer:
		case <-ctx.Done():
			return
		}
	}
}

// balance gives what comes in at l to the first server while that is ready, and then to the
// second, until l is closed.
func balance(l net.Listener, first, second *generation) {
	for {
		c, err := l.Accept()
		if err != nil {
			return
		}
		to := first
		if !first.Ready() {
			to = second
		}
		select {
		case to.accepted <- c:
		case <-to.closed:
			c.Close()
		}
	}
}
