package conn

import (
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"strconv"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"
)

// TestControlFramesAtRandomOverSockets plays the rounds of TestControlFramesAtRandom over TCP on loopback, many
// at a time and 50 times as fast. The peer's end of a connection in memory is relayed to the other end of the
// socket. What needs virtual time is not judged: whether the last ping has its answer, and whether what the kernel
// has taken arrives although the connection was reset.
func TestControlFramesAtRandomOverSockets(t *testing.T) {
	rounds, _ := strconv.Atoi(os.Getenv("CONN_ROUNDS"))
	seed, _ := strconv.ParseUint(os.Getenv("CONN_SEED"), 10, 64)
	if rounds == 0 {
		rounds = 64
	}
	const together = 64
	tally := map[string]int{}
	for first := 0; first < rounds; first += together {
		n := min(together, rounds-first)
		tallies := make([]map[string]int, n)
		ok := t.Run(fmt.Sprint("from ", seed+uint64(first)), func(t *testing.T) {
			var all sync.WaitGroup
			for i := range n {
				tallies[i] = map[string]int{}
				x := drawRound(t, seed+uint64(first+i), tallies[i])
				x.speed, x.sockets = 50, new(sockets)
				x.l = x.sockets.dial(t, x)
				all.Go(x.run)
			}
			all.Wait()
		})
		for _, one := range tallies {
			for what, count := range one {
				tally[what] += count
			}
		}
		if !ok {
			break
		}
	}
	fmt.Println(rounds, "rounds over sockets from", seed, tally)
}

// sockets is a TCP connection on loopback between a client and its peer in memory.
type sockets struct {
	near, far   *net.TCPConn
	write, read sync.WaitGroup // relay what the client writes and reads
}

// dial is dial over the sockets.
func (s *sockets) dial(t *testing.T, x *round) *link {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	defer listener.Close()
	near, err := net.Dial("tcp", listener.Addr().String())
	require.NoError(t, err)
	far, err := listener.Accept()
	require.NoError(t, err)
	s.near, s.far = near.(*net.TCPConn), far.(*net.TCPConn)
	require.NoError(t, errors.Join(s.near.SetWriteBuffer(16<<10), s.far.SetReadBuffer(16<<10))) // as a window
	l := &link{wire: new(Wire)}
	var memory net.Conn
	tap := func(nc net.Conn) net.Conn {
		memory = nc
		return l.wire.Tap(s.near)
	}
	l.ws = l.shakeHands(t, x.mode, tap, l.wire.Transport)
	l.WebSocket, err = NewWebSocket(l.ws, l.wire, x.options)
	require.NoError(t, err)
	s.write.Go(func() {
		if _, err := io.Copy(memory, s.far); err == nil || !errors.Is(err, io.ErrClosedPipe) {
			l.raw.in.set(func() {
				if l.raw.in.eof == nil {
					l.raw.in.eof = io.EOF
				}
			})
		}
	})
	s.read.Go(func() {
		if _, err := io.Copy(s.far, memory); err != nil {
			_ = s.far.SetLinger(0) // the peer has reset the connection, or the client has closed it
		}
		_ = s.far.Close()
	})
	return l
}

// end lets the peer take what the client has sent, which has closed its end, and waits for that.
func (s *sockets) end(l *link) {
	l.client().fill(1 << 30)
	s.write.Wait()
	l.raw.Close()
	s.read.Wait()
}
