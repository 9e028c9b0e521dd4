package conntest_test

import (
	"context"
	"net"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/redial-go/redial/conn/conntest"
)

func TestLedgerNotesTheInstantOfEveryDial(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var n conntest.Network
		start := time.Now()
		n.DialContext(t.Context(), "tcp", addr)
		time.Sleep(7 * time.Second)
		n.DialContext(t.Context(), "tcp", "other.test:1")
		time.Sleep(time.Second)
		n.DialContext(t.Context(), "tcp", addr)
		at := func(s int) time.Time { return start.Add(time.Duration(s) * time.Second) }
		require.Equal(t, []time.Time{at(0), at(8)}, n.Dials(addr))
		require.Equal(t, []time.Time{at(0), at(7), at(8)}, n.Dials(""))
		require.Empty(t, n.Dials("unknown.test:1"))
		require.Equal(t, conntest.Count{}, n.Count("unknown.test:1"))
	})
}

func TestLedgerCountsWhatOneOwnerHolds(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var n conntest.Network
		l, err := n.Listen(addr)
		require.NoError(t, err)
		defer l.Close()
		open := func() net.Conn {
			c, err := n.DialContext(t.Context(), "tcp", addr)
			require.NoError(t, err)
			return c
		}
		open().Close()
		open().Close()
		require.Len(t, n.Dials(addr), 2)
		require.Equal(t, conntest.Count{MaxDialing: 1, MaxOpen: 1, MaxHeld: 1}, n.Count(addr))

		c := open()
		n.Fault(addr, conntest.Fault{Hang: true})
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		go n.DialContext(ctx, "tcp", addr)
		synctest.Wait()
		want := conntest.Count{Dialing: 1, MaxDialing: 1, Open: 1, MaxOpen: 1, MaxHeld: 2}
		require.Equal(t, want, n.Count(addr))
		require.Equal(t, want, n.Count(""))
		require.Len(t, n.Dials(""), 4)
		time.Sleep(time.Minute)
		require.Zero(t, n.Count(addr).Dialing)
		c.Close()
	})
}

func TestUnclosedNamesTheEndThatIsOpen(t *testing.T) {
	var n conntest.Network
	client, server, p := connect(t, &n)
	require.Equal(t, "client:1->feed.test:80 (both ends open)", p.String())
	client.Close()
	require.Len(t, n.Unclosed(), 1)
	require.Equal(t, "client:1->feed.test:80 (server end open)", n.Unclosed()[0].String())
	server.Close()
	require.Empty(t, n.Unclosed())
	require.Equal(t, "client:1->feed.test:80 (closed)", p.String())

	_, server2, p2 := connect(t, &n)
	server2.Close()
	require.Equal(t, "client:2->feed.test:80 (client end open)", p2.String())
	p2.Client().Close()
	require.ErrorIs(t, server.Close(), net.ErrClosed, "and is counted once")
	require.Zero(t, n.Count("").Open)
}

func TestConnsListsLiveConnectionsOldestFirst(t *testing.T) {
	var n conntest.Network
	l, err := n.Listen(addr)
	require.NoError(t, err)
	defer l.Close()
	for range 3 {
		c, err := n.DialContext(t.Context(), "tcp", addr)
		require.NoError(t, err)
		defer c.Close()
	}
	all := n.Conns(addr)
	require.Len(t, all, 3)
	all[0].Reset()
	all[2].Cut(conntest.Both, 0)
	require.Equal(t, all[1:2], n.Conns(""))
	all[1].Client().Close()
	require.Empty(t, n.Conns(addr))
	require.Empty(t, n.Conns("other.test:1"))
}

func TestResetAllAndStallAllReachEveryConnection(t *testing.T) {
	var n conntest.Network
	l, err := n.Listen(addr)
	require.NoError(t, err)
	defer l.Close()
	var clients, servers []net.Conn
	for range 3 {
		c, err := n.DialContext(t.Context(), "tcp", addr)
		require.NoError(t, err)
		defer c.Close()
		s, err := l.Accept()
		require.NoError(t, err)
		defer s.Close()
		clients, servers = append(clients, c), append(servers, s)
	}
	for _, p := range n.Conns(addr) {
		p.Stall(conntest.Both)
	}
	for i := range clients {
		write(t, clients[i], "x")
	}
	for _, p := range n.Conns(addr) {
		p.Thaw(conntest.Both)
	}
	for i := range servers {
		read(t, servers[i], "x")
	}
	n.ResetAll("")
	for i := range clients {
		require.ErrorIs(t, readErr(t, clients[i]), syscall.ECONNRESET)
		require.ErrorIs(t, readErr(t, servers[i]), syscall.ECONNRESET)
	}
}

func TestPeakIsTheTallestWindow(t *testing.T) {
	var times []time.Time
	for _, ms := range []int{0, 10, 99, 100, 150, 199, 1000} {
		times = append(times, time.UnixMilli(int64(ms)))
	}
	require.Equal(t, 3, conntest.Peak(times, 100*time.Millisecond), "99 to 199 would be four, and is too long")
	require.Equal(t, 7, conntest.Peak(times, time.Hour))
	require.Equal(t, 1, conntest.Peak(times, time.Nanosecond))
	require.Zero(t, conntest.Peak(nil, time.Second))
}
