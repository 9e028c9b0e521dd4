package drain_test

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"net"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/redial-go/redial/conn"
	"github.com/redial-go/redial/conn/conntest"
	"github.com/redial-go/redial/dialer"
	"github.com/redial-go/redial/reconnect"
	"github.com/redial-go/redial/reconnect/backoff"
	"github.com/redial-go/redial/reconnect/drain"
)

// A server is replaced by its successor behind the same address, under clients of this library.

// client is a Conn that reads numbers.
type client struct {
	*reconnect.Conn
	next  atomic.Int64 // the number that comes next
	seams []*reconnect.Seam
	lost  []string // what came instead of next, if anything did

	warned bool // a notice of the server has come
}

// soonAgain is a policy that waits for 20 ms.
type soonAgain struct{}

func (soonAgain) Next(backoff.History, *rand.Rand) (backoff.Step, bool) {
	return backoff.Step{Wait: 20 * time.Millisecond}, true
}

// open starts a client.
func (c *client) open(t *testing.T, d *dialer.WebSocket, seed int) {
	var o reconnect.Options
	o.Run.Policy, o.Run.Rand = soonAgain{}, rand.NewPCG(uint64(seed), 0)
	o.Rotate.Drain = 50 * time.Millisecond
	o.OnSession = func(_ context.Context, op *reconnect.Opening) error {
		return op.Write(conn.TextMessage(fmt.Sprint("from ", c.next.Load())))
	}
	c.next.Store(1)
	var err error
	c.Conn, err = reconnect.New(d, &o)
	require.NoError(t, err)
	t.Cleanup(func() {
		c.Close()
		<-c.Done()
	})
}

// read reads until a number has come from that server, and three more.
func (c *client) read(ctx context.Context, server string) error {
	for seen := 0; seen < 4; {
		m, err := c.Read(ctx, nil)
		if seam, is := errors.AsType[*reconnect.Seam](err); is {
			c.seams = append(c.seams, seam)
			continue
		} else if err != nil {
			return err
		}
		var number, by int64
		text := string(m.Data)
		if _, err := fmt.Sscanf(text, "leave %d", &by); err == nil {
			c.warned = true
			c.Rotate(m.Session, reconnect.Advice{By: time.Unix(0, by)})
			continue
		}
		fmt.Sscan(text, &number)
		if number > c.next.Load() || number == 0 {
			c.lost = append(c.lost, fmt.Sprintf("%d: %s", c.next.Load(), text))
		}
		c.next.Store(max(c.next.Load(), number+1)) // some may come twice
		if strings.HasSuffix(text, server) {
			seen++
		}
	}
	return nil
}

// restart drains the first of two servers behind l under n clients, which all end up at the second.
// It returns the clients, and the numbers of the first server.
func restart(t *testing.T, l net.Listener, d *dialer.WebSocket, warns bool, n int, o drain.Options) ([]*client, drain.Stats) {
	ctx, cancel := context.WithTimeout(t.Context(), 2*time.Minute)
	defer cancel()
	numbers := &source{newer: make(chan struct{})}
	var background sync.WaitGroup
	background.Go(func() { numbers.run(ctx) }) // all are waited for below
	first := &generation{name: "first", warns: warns, source: numbers}
	second := &generation{name: "second", source: numbers}
	first.start(t, o)
	second.start(t, drain.Options{})
	background.Go(func() { balance(l, first, second) })

	clients := make([]*client, n)
	for i := range clients {
		clients[i] = new(client)
		clients[i].open(t, d, i)
	}
	each(t, clients, func(c *client) error { return c.read(ctx, "first") })
	var drained error
	draining := make(chan struct{})
	background.Go(func() { defer close(draining); drained = first.Drain(ctx) })
	each(t, clients, func(c *client) error { return c.read(ctx, "second") })
	<-draining
	require.NoError(t, drained)
	for _, c := range clients {
		c.Close()
		<-c.Done()
	}
	l.Close()
	cancel()
	background.Wait()
	return clients, first.Stats()
}

// each calls f for all clients at once.
func each(t *testing.T, clients []*client, f func(*client) error) {
	t.Helper()
	errs := make([]error, len(clients))
	var all sync.WaitGroup
	for i, c := range clients {
		all.Go(func() { errs[i] = f(c) })
	}
	all.Wait()
	require.NoError(t, errors.Join(errs...))
}

// On real sockets: all clients come to the second server, and nothing is lost, whether they
// are warned or closed.
func TestNothingIsLostWhenAServerIsReplaced(t *testing.T) {
	for name, warns := range map[string]bool{"warned": true, "closed": false} {
		t.Run(name, func(t *testing.T) {
			l, err := net.Listen("tcp", "127.0.0.1:0")
			require.NoError(t, err)
			clients, s := restart(t, l, &dialer.WebSocket{URL: "ws://" + l.Addr().String()}, warns, 25,
				drain.Options{Lead: 50 * time.Millisecond, Window: time.Second})
			for _, c := range clients {
				require.Empty(t, c.lost)
				require.NotEmpty(t, c.seams)
			}
			require.Equal(t, 25, s.Left+s.Closed+s.Failed)
			require.Equal(t, warns, slices.ContainsFunc(clients, func(c *client) bool { return c.warned }))
		})
	}
}

// restartInMemory restarts a server under 50 clients in virtual time, where nothing comes late. It
// asserts that each client has one seam, and has lost nothing.
func restartInMemory(t *testing.T, warns bool, check func(t *testing.T, seam *reconnect.Seam)) (s drain.Stats) {
	synctest.Test(t, func(t *testing.T) {
		n := new(conntest.Network)
		l, err := n.Listen("feed.test:80")
		require.NoError(t, err)
		d := &dialer.WebSocket{URL: "ws://feed.test", DialContext: n.DialContext}
		var clients []*client
		clients, s = restart(t, l, d, warns, 50, drain.Options{Lead: time.Second, Window: 4 * time.Second, Rand: rand.NewPCG(1, 2)})
		for _, c := range clients {
			require.Empty(t, c.lost)
			require.Len(t, c.seams, 1)
			check(t, c.seams[0])
		}
	})
	return s
}

// A client that is warned is never without a connection, and no connection is cut.
func TestClientsThatAreWarnedAreNotCut(t *testing.T) {
	s := restartInMemory(t, true, func(t *testing.T, seam *reconnect.Seam) {
		require.True(t, seam.Planned && seam.Overlapped, "%+v", seam)
	})
	require.Equal(t, drain.Stats{Added: 50, Left: s.Left, Closed: s.Closed}, s)
	require.Greater(t, s.Left, 35, "the others had drawn a time just before the last moment")
}

// The same without a warning: each is away for the wait before its redial.
func TestClientsThatAreClosedComeBackAfterTheirWait(t *testing.T) {
	s := restartInMemory(t, false, func(t *testing.T, seam *reconnect.Seam) {
		require.Equal(t, backoff.ReasonCloseRestart, seam.Reason)
	})
	require.Equal(t, drain.Stats{Added: 50, Closed: 50}, s)
}
