package reconnect_test

import (
	"bufio"
	"context"
	"errors"
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

// desk is a place on a network in memory where the test itself serves framed
// TCP, and a dialer that goes there.
type desk struct {
	network *conntest.Network
	dialer  *dialer.Framed
	clients chan net.Conn
	start   time.Time
}

// accept hands each connection of l to the test.
func (d *desk) accept(l net.Listener, over <-chan struct{}) {
	for {
		nc, err := l.Accept()
		if err != nil {
			return
		}
		select {
		case d.clients <- nc:
		case <-over:
			nc.Close()
		}
	}
}

// serve has f serve each connection until ctx ends, and closes it then or before.
func (d *desk) serve(ctx context.Context, f func(nc net.Conn)) {
	var all sync.WaitGroup
	defer all.Wait()
	for {
		select {
		case nc := <-d.clients:
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

func (d *desk) now() time.Duration { return time.Since(d.start) }

// open starts a Conn to the desk, to be closed when the test ends.
func (d *desk) open(t *testing.T, o *reconnect.Options) *reconnect.Conn {
	t.Helper()
	c, err := reconnect.New(d.dialer, o)
	require.NoError(t, err)
	t.Cleanup(func() { quit(c) })
	return c
}

// next returns the server's end of the next connection, once that is in use.
func (d *desk) next(t *testing.T) *customer {
	t.Helper()
	nc := <-d.clients
	t.Cleanup(func() { nc.Close() })
	synctest.Wait()
	pipes := d.network.Conns(nc.LocalAddr().String())
	return &customer{nc, bufio.NewReader(nc), pipes[len(pipes)-1]}
}

const deskAddr = "desk.test:7"

// atDesk runs a test in virtual time. In the end, when every Conn of it is closed,
// no connection may be left open (promise 11).
func atDesk(t *testing.T, f conn.Framer, test func(t *testing.T, d *desk)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		n := new(conntest.Network)
		l, err := n.Listen(deskAddr)
		require.NoError(t, err)
		d := &desk{network: n, clients: make(chan net.Conn), start: time.Now()}
		d.dialer = &dialer.Framed{Address: deskAddr, Framer: f, DialContext: n.DialContext}
		over, stopped := make(chan struct{}), make(chan struct{})
		go func() { defer close(stopped); d.accept(l, over) }()
		t.Cleanup(func() {
			if open := n.Open(); open > 0 {
				t.Errorf("connections that the client left open: %d", open)
			}
			close(over)
			l.Close()
			<-stopped
		})
		test(t, d)
	})
}

// customer is one connection as the server sees it.
type customer struct {
	net.Conn
	in   *bufio.Reader
	pipe *conntest.Pipe
}

// say sends text as it is, and lets it arrive.
func (c *customer) say(t *testing.T, text string) {
	t.Helper()
	_, err := io.WriteString(c, text)
	require.NoError(t, err)
	synctest.Wait()
}

// bars is a framer of a user: a message is eight bytes, neither more nor less.
type bars struct{}

func (bars) AppendFrame(dst, message []byte) ([]byte, error) {
	if len(message) != 8 {
		return dst, errors.New("a bar has eight bytes")
	}
	return append(dst, message...), nil
}

func (bars) ReadFrame(r *bufio.Reader, buf []byte, _ int) ([]byte, error) {
	return conn.ReadBody(r, buf[:0], 8)
}
