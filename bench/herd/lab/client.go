package lab

import (
	"context"
	"math/rand/v2"
	"net"
	"net/netip"
	"strings"
	"time"

	"github.com/redial-go/redial/bench/herd/fleet"
	"github.com/redial-go/redial/dialer"
	"github.com/redial-go/redial/reconnect"
	"github.com/redial-go/redial/reconnect/backoff"
)

// newDialer returns how a client dials: as the library does, or with one limit on the
// whole try. Of several URLs it knows all, or the first stands for a balancer that hands
// each connection to one of them at random.
func newDialer(c fleet.Client, urls []string, known bool, from netip.Addr) reconnect.Dialer {
	d := &dialer.WebSocket{TCP: dialer.TCPOptions{LocalAddr: from}}
	switch {
	case len(urls) == 1:
		d.URL = urls[0]
	case known:
		d.URLs = urls
	default:
		d.URL, d.DialContext = urls[0], balancer(urls, from)
	}
	if !c.Whole {
		return d
	}
	d.ConnectTimeout, d.HandshakeTimeout = time.Hour, time.Hour
	return whole{d}
}

// balancer returns a dial to the host of one of the URLs at random, whatever its address.
func balancer(urls []string, from netip.Addr) func(ctx context.Context, network, _ string) (net.Conn, error) {
	var d net.Dialer
	if from.IsValid() {
		d.LocalAddr = &net.TCPAddr{IP: from.AsSlice()}
	}
	return func(ctx context.Context, network, _ string) (net.Conn, error) {
		host := strings.TrimSuffix(strings.TrimPrefix(urls[rand.IntN(len(urls))], "ws://"), "/")
		return d.DialContext(ctx, network, host)
	}
}

// whole is a dialer with no limits of its own: the supervisor ends the try.
type whole struct{ *dialer.WebSocket }

// DialTimeout is the one limit, Connect.
func (whole) DialTimeout(t backoff.Attempt) time.Duration {
	if t.Connect <= 0 {
		return backoff.DefaultConnect
	}
	return t.Connect
}
