package netwatch

import (
	"net"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/redial-go/redial/conn"
	"github.com/redial-go/redial/dialer"
	"github.com/redial-go/redial/reconnect"
	"github.com/redial-go/redial/reconnect/backoff"
)

// checkedConn is a real Conn. It notes that Check was called.
type checkedConn struct {
	*reconnect.Conn
	checked chan struct{}
}

func (c checkedConn) Check() {
	c.Conn.Check()
	c.checked <- struct{}{}
}

// listener serves connections, which it closes at the end of the test, and returns its port.
func listener(t *testing.T) (port string) {
	l, err := net.Listen("tcp", ":0")
	require.NoError(t, err)
	done := make(chan struct{})
	go func() {
		defer close(done)
		for {
			nc, err := l.Accept()
			if err != nil {
				return
			}
			defer nc.Close()
		}
	}()
	t.Cleanup(func() { l.Close(); <-done })
	_, port, err = net.SplitHostPort(l.Addr().String())
	require.NoError(t, err)
	return port
}

func TestAConnThatWaitsForAnHourDialsWhenTheNetworkComes(t *testing.T) {
	inWired(t, func(s *wired) {
		hourly := &backoff.Exponential{Base: time.Hour, Cap: time.Hour, Jitter: backoff.JitterNone}
		endpoint := &dialer.Framed{Address: net.JoinHostPort("10.9.0.1", listener(t)), Framer: conn.Lines{}}
		c, err := reconnect.New(endpoint, &reconnect.Options{Run: reconnect.RunOptions{Policy: hourly}})
		require.NoError(t, err)
		defer func() { c.Close(); <-c.Done() }()
		require.NoError(t, c.Await(t.Context(), reconnect.StateWaiting))
		attached := checkedConn{Conn: c, checked: make(chan struct{}, 10)} // more than there are changes
		s.w.Attach(t.Context(), attached)

		s.add("eth0", "10.9.0.1/24")
		require.NoError(t, c.AwaitReady(t.Context()))
		<-attached.checked
		require.EqualValues(t, 2, c.Stats().Dials)

		s.down("veth0") // the connection stays ready, and has to find out
		<-attached.checked
		require.Equal(t, reconnect.StateReady, c.State())
	})
}
