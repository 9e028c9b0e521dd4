package conntest_test

import (
	"bytes"
	"errors"
	"io"
	"math/rand/v2"
	"net"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/redial-go/redial/conn/conntest"
)

// Whatever the faults and their order, each side reads a prefix of what the other wrote.
// Once the faults are healed and the ends are closed, no goroutine waits any more.
func TestAnyStormOfFaultsLeavesAPrefix(t *testing.T) {
	for seed := range uint64(100) {
		synctest.Test(t, func(t *testing.T) {
			r := rand.New(rand.NewPCG(seed, 0))
			var n conntest.Network
			client, server, p := connect(t, &n)
			done := make(chan error, 4) // one for each writer and reader
			for _, way := range [][2]net.Conn{{client, server}, {server, client}} {
				go func() { done <- count(way[0]) }()
				go func() { done <- verify(way[1]) }()
			}
			for range 20 {
				time.Sleep(time.Duration(r.IntN(1000)) * time.Millisecond)
				mishap(r, p)
			}
			p.Thaw(conntest.Both)
			p.Cut(conntest.Both, 0)
			time.Sleep(time.Hour) // the latest byte is there
			client.Close()
			server.Close()
			for range 4 {
				require.NoError(t, <-done, "seed %d", seed)
			}
			require.Empty(t, n.Unclosed())
		})
	}
}

// mishap does one random thing to p, which may end it.
func mishap(r *rand.Rand, p *conntest.Pipe) {
	d := conntest.Direction(1 + r.IntN(3))
	one := conntest.Direction(1 + r.IntN(2))
	switch r.IntN(40) {
	case 0:
		p.Reset()
	case 1:
		p.FIN(d)
	case 2:
		p.Cut(one, 1+r.Int64N(10_000))
	case 3:
		p.CutReset(one, 1+r.Int64N(10_000))
	case 4, 5, 6, 7, 8:
		p.Stall(d)
	case 9, 10, 11, 12, 13, 14, 15:
		p.Thaw(d)
	case 16, 17, 18, 19, 20, 21, 22:
		p.Latency(d, time.Duration(r.IntN(3000))*time.Millisecond)
	case 23, 24, 25, 26, 27, 28:
		p.Trickle(d, r.IntN(2000), time.Duration(r.IntN(100))*time.Millisecond)
	default:
		p.Window(d, r.IntN(5000)-1)
	}
}

// count writes bytes that count up until a write fails.
func count(c net.Conn) error {
	var next byte
	for size := 1; ; size = size*7%1009 + 1 {
		b := make([]byte, size)
		for i := range b {
			b[i] = next
			next++
		}
		if _, err := c.Write(b); err != nil {
			return ended(err)
		}
		time.Sleep(5 * time.Millisecond)
	}
}

// verify reads bytes that count up until a read fails.
func verify(c net.Conn) error {
	var next byte
	b := make([]byte, 1500)
	for {
		n, err := c.Read(b)
		for _, got := range b[:n] {
			if got != next {
				return errors.New("a byte is lost, changed or twice there")
			}
			next++
		}
		if err != nil {
			return ended(err)
		}
	}
}

// ended returns nil if err is one by which a connection may end, else err.
func ended(err error) error {
	for _, good := range []error{io.EOF, net.ErrClosed, syscall.ECONNRESET, syscall.EPIPE} {
		if errors.Is(err, good) {
			return nil
		}
	}
	return err
}

func TestNetworkKeepsRealTimeOutsideABubble(t *testing.T) {
	var n conntest.Network
	client, server, p := connect(t, &n)
	start := time.Now()
	p.Latency(conntest.ToServer, 20*time.Millisecond)
	p.Trickle(conntest.ToServer, 500, time.Millisecond)
	message := bytes.Repeat([]byte("x"), 1000)
	_, err := client.Write(message)
	require.NoError(t, err)
	read(t, server, string(message))
	require.GreaterOrEqual(t, time.Since(start), 20*time.Millisecond)
	require.NoError(t, server.SetReadDeadline(time.Now().Add(time.Millisecond)))
	var timeout net.Error
	require.ErrorAs(t, readErr(t, server), &timeout)
	require.True(t, timeout.Timeout())
}
