package reconnect_test

import (
	"bufio"
	"context"
	"io"
	"net"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/redial-go/redial/conn"
	"github.com/redial-go/redial/conn/conntest"
	"github.com/redial-go/redial/dialer"
	"github.com/redial-go/redial/reconnect"
)

// framedServer is an address on a network in memory where the test itself serves framed TCP,
// and a dialer that goes there.
type framedServer struct {
	network *conntest.Network
	dialer  *dialer.Framed
	clients chan net.Conn
	start   time.Time // when the test began, or ready returned

	form    form
	session uint64 // the number of the session that ready has returned
}

// accept hands each connection of l to the test.
func (s *framedServer) accept(l net.Listener, over <-chan struct{}) {
	for {
		nc, err := l.Accept()
		if err != nil {
			return
		}
		select {
		case s.clients <- nc:
		case <-over:
			nc.Close()
		}
	}
}

// serve calls f for each connection until ctx ends, and closes the connection when f returns or
// ctx ends.
func (s *framedServer) serve(ctx context.Context, f func(nc net.Conn)) {
	var all sync.WaitGroup
	defer all.Wait()
	for {
		select {
		case nc := <-s.clients:
			all.Go(func() {
				defer nc.Close()
				defer context.AfterFunc(ctx, func() { nc.Close() })()
				f(nc)
			})
		case <-ctx.Done():
			return
		}
	}
}

func (s *framedServer) now() time.Duration { return time.Since(s.start) }

// open starts a Conn to the server. The end of the test closes it.
func (s *framedServer) open(t *testing.T, o *reconnect.Options) *reconnect.Conn {
	t.Helper()
	c, err := reconnect.New(s.dialer, o)
	require.NoError(t, err)
	t.Cleanup(func() { closeAndWait(c) })
	return c
}

// next returns the server's end of the next connection, when the client uses it. A connection
// that the client drops at once, because the time of its dial is over, is not meant.
func (s *framedServer) next(t *testing.T) *framedPeer {
	t.Helper()
	for {
		nc := <-s.clients
		t.Cleanup(func() { nc.Close() })
		synctest.Wait()
		if pipes := s.network.Conns(nc.LocalAddr().String()); len(pipes) > 0 {
			return &framedPeer{nc, bufio.NewReader(nc), pipes[len(pipes)-1]}
		}
	}
}

// ready starts a Conn, brings it into the form of s, and returns it with the server's end of its session.
func (s *framedServer) ready(t *testing.T, o *reconnect.Options) (*reconnect.Conn, *framedPeer) {
	t.Helper()
	o = s.form.options(t, o)
	c := s.open(t, o)
	peer := s.next(t)
	for n := range s.form.rotations {
		c.Rotate(n+1, reconnect.Advice{})
		before := peer
		peer = s.next(t)
		before.Close()
		wantRotated(t, c, o, n+2)
	}
	s.session, s.start = s.form.rotations+1, time.Now()
	return c, peer
}

// inEachFramedForm is withFramedServer, once for each form that begins with ready.
func inEachFramedForm(t *testing.T, f conn.Framer, test func(t *testing.T, server *framedServer)) {
	t.Helper()
	for name, form := range serverForms {
		t.Run(name, func(t *testing.T) {
			withFramedServer(t, f, func(t *testing.T, server *framedServer) {
				server.form = form
				test(t, server)
			})
		})
	}
}

const framedAddr = "framed.test:7"

// withFramedServer runs a test in virtual time. In the end, when every Conn of it is closed, no
// connection may be left open (promise 11).
func withFramedServer(t *testing.T, f conn.Framer, test func(t *testing.T, server *framedServer)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		n := new(conntest.Network)
		l, err := n.Listen(framedAddr)
		require.NoError(t, err)
		server := &framedServer{network: n, clients: make(chan net.Conn), start: time.Now()}
		server.dialer = &dialer.Framed{Address: framedAddr, Framer: f, DialContext: n.DialContext}
		over, stopped := make(chan struct{}), make(chan struct{})
		go func() { defer close(stopped); server.accept(l, over) }()
		t.Cleanup(func() {
			if open := n.Open(); open > 0 {
				t.Errorf("connections that the client left open: %d", open)
			}
			close(over)
			l.Close()
			<-stopped
		})
		test(t, server)
	})
}

// framedPeer is one connection as the server sees it.
type framedPeer struct {
	net.Conn
	in   *bufio.Reader
	pipe *conntest.Pipe
}

// say writes text without framing it, and lets it arrive.
func (c *framedPeer) say(t *testing.T, text string) {
	t.Helper()
	_, err := io.WriteString(c, text)
	require.NoError(t, err)
	synctest.Wait()
}
