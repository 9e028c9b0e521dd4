package scene

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

// FramedServer is an address on a network in memory where the test itself serves framed TCP,
// and a dialer that goes there.
type FramedServer struct {
	Network *conntest.Network
	Dialer  *dialer.Framed
	Clients chan net.Conn
	start   time.Time // when the test began, or Ready returned

	form    Form
	Session uint64 // the number of the session that Ready has returned
}

// accept hands each connection of l to the test.
func (s *FramedServer) accept(l net.Listener, over <-chan struct{}) {
	for {
		nc, err := l.Accept()
		if err != nil {
			return
		}
		select {
		case s.Clients <- nc:
		case <-over:
			nc.Close()
		}
	}
}

// Serve calls f for each connection until ctx ends, and closes the connection when f returns or
// ctx ends.
func (s *FramedServer) Serve(ctx context.Context, f func(nc net.Conn)) {
	var all sync.WaitGroup
	defer all.Wait()
	for {
		select {
		case nc := <-s.Clients:
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

func (s *FramedServer) Now() time.Duration { return time.Since(s.start) }

// Open starts a Conn to the server. The end of the test closes it.
func (s *FramedServer) Open(t *testing.T, o *reconnect.Options) *reconnect.Conn {
	t.Helper()
	c, err := reconnect.New(s.Dialer, o)
	require.NoError(t, err)
	t.Cleanup(func() { CloseAndWait(c) })
	return c
}

// Next returns the server's end of the next connection, when the client uses it. A connection
// that the client drops at once, because the time of its dial is over, is not meant.
func (s *FramedServer) Next(t *testing.T) *FramedPeer {
	t.Helper()
	for {
		nc := <-s.Clients
		t.Cleanup(func() { nc.Close() })
		synctest.Wait()
		if pipes := s.Network.Conns(nc.LocalAddr().String()); len(pipes) > 0 {
			return &FramedPeer{nc, bufio.NewReader(nc), pipes[len(pipes)-1]}
		}
	}
}

// Ready starts a Conn, brings it into the form of s, and returns it with the server's end of its session.
func (s *FramedServer) Ready(t *testing.T, o *reconnect.Options) (*reconnect.Conn, *FramedPeer) {
	t.Helper()
	o = s.form.options(t, o)
	c := s.Open(t, o)
	peer := s.Next(t)
	for n := range s.form.Rotations {
		c.Rotate(n+1, reconnect.Advice{})
		before := peer
		peer = s.Next(t)
		before.Close()
		wantRotated(t, c, o, n+2)
	}
	s.Session, s.start = s.form.Rotations+1, time.Now()
	return c, peer
}

// InEachFramedForm is WithFramedServer, once for each form that begins with Ready.
func InEachFramedForm(t *testing.T, f conn.Framer, test func(t *testing.T, server *FramedServer)) {
	t.Helper()
	for name, form := range serverForms {
		t.Run(name, func(t *testing.T) {
			WithFramedServer(t, f, func(t *testing.T, server *FramedServer) {
				server.form = form
				test(t, server)
			})
		})
	}
}

const FramedAddr = "framed.test:7"

// WithFramedServer runs a test in virtual time. In the end, when every Conn of it is closed, no
// connection may be left open (promise 11).
func WithFramedServer(t *testing.T, f conn.Framer, test func(t *testing.T, server *FramedServer)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		n := new(conntest.Network)
		l, err := n.Listen(FramedAddr)
		require.NoError(t, err)
		server := &FramedServer{Network: n, Clients: make(chan net.Conn), start: time.Now()}
		server.Dialer = &dialer.Framed{Address: FramedAddr, Framer: f, DialContext: n.DialContext}
		over, stopped := make(chan struct{}), make(chan struct{})
		go func() { defer close(stopped); server.accept(l, over) }()
		t.Cleanup(func() {
			if open := n.Count("").Open; open > 0 {
				t.Errorf("connections that the client left open: %d", open)
			}
			close(over)
			l.Close()
			<-stopped
		})
		test(t, server)
	})
}

// FramedPeer is one connection as the server sees it.
type FramedPeer struct {
	net.Conn
	In   *bufio.Reader
	Pipe *conntest.Pipe
}

// Say writes text without framing it, and lets it arrive.
func (c *FramedPeer) Say(t *testing.T, text string) {
	t.Helper()
	_, err := io.WriteString(c, text)
	require.NoError(t, err)
	synctest.Wait()
}
